//! Architectures: each file reads like its paper.

mod activation_format;
mod batch;
mod config;
mod error;
mod experts;
mod gpt_oss;
mod llama;
mod loaded;
mod qwen3_moe;
mod rope_keys;
mod screening;
mod self_attention;
mod tensors;
#[cfg(test)]
mod tests;

pub use activation_format::ActivationFormat;
pub use batch::Segment;
pub use error::{ForwardError, ModelError};
pub use loaded::{DEFAULT_CTX, LoadOptions, LoadedModel, SUPPORTED_ARCHITECTURES, Want};
pub use screening::ScreenCounts;
