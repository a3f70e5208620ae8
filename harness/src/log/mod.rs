//! What was tried and what came of it, kept in order; dead ends too.

mod entry;
mod file;

pub use entry::{Entry, EntryError};
pub use file::{Log, LogError};
