//! Random-weight model files of any gpt-oss or Qwen3-MoE shape, byte-reproducible from a seed.

mod error;
mod fill;
mod gpt_oss;
mod plan;
mod qwen3_moe;
mod rng;
mod shape;
#[cfg(test)]
mod tests;
mod vocab;
mod write;

pub use error::SynthError;
pub use plan::{Recipe, plan};
pub use shape::{Family, Shape, Yarn};
pub use vocab::VocabKind;
pub use write::{Report, write};
