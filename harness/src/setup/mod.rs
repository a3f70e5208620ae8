//! Bringing a real llama.cpp server to this machine.

mod record;

pub use record::{BuildKind, LlamaCpp};
