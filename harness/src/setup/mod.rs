//! Bringing a real llama.cpp server to this machine.
