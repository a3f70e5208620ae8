//! The command line.

mod entry;
mod exit;

pub use entry::main;
pub use exit::Exit;
