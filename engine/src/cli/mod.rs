//! The command line: one file a command, and `entry` that picks one.

mod args;
mod bench;
mod entry;
mod failure;
mod info;
mod pipe;
mod probe;
mod run;
mod serve;
mod store;
pub mod synth;
mod verify;

pub use entry::main;
