//! Persistent worker threads, and safe ways to let them write disjoint parts of one buffer.

mod cores;
mod pool;
mod split;

pub use cores::physical_cores;
pub use pool::Team;
pub use split::Block;
