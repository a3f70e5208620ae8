//! The command line.

mod entry;

pub use entry::main;
