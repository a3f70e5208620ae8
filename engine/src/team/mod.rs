//! Persistent worker threads.

mod pool;

pub use pool::Team;
