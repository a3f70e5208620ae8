//! Random-weight model files of any gpt-oss shape, byte-reproducible from a seed.

mod error;
mod fill;
mod plan;
mod rng;
mod shape;
#[cfg(test)]
mod tests;
mod vocab;
mod write;

pub use error::SynthError;
pub use plan::{Recipe, plan};
pub use shape::{Shape, Yarn};
pub use vocab::VocabKind;
pub use write::{Report, write};
