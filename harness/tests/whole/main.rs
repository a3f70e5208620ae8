//! Whole commands, on real processes: the scripted mock, the bundled engine, a real llama.cpp.

mod aa;
mod built_arms;
mod exit_codes;
mod gate;
mod mirrored_study;
mod planted_engine;
mod setup_command;
mod study_commands;
mod support;
mod token_agreement;
mod workload_check;
