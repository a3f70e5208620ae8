//! A scripted server: real HTTP over a real socket, with times that a test knows beforehand.

mod script;
mod serve;

pub use script::{Dialect, End, Reply, Script};
pub use serve::serve;
