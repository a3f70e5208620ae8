//! Architectures: each file reads like its paper.

mod error;

pub use error::ModelError;
