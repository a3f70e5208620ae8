//! One command from a fresh checkout to an audited comparison.

mod engine;
mod steps;

pub use engine::{Profile, build_engine};
pub use steps::demo;
