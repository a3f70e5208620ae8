//! GGUF containers, versions 2 and 3, split files too, memory-mapped.
//!
//! The layout is that of ggml's `docs/gguf.md`: magic, version, counts, key-value pairs, tensor
//! descriptions, padding to the alignment, tensor data.

mod cursor;
mod error;
mod file;
mod header;
mod metadata;
mod populate;
mod split;
mod tensors;
#[cfg(test)]
mod tests;
mod writer;

pub use error::GgufError;
pub use file::{GgufFile, TensorInfo};
pub use metadata::{Metadata, Value};
pub use writer::{GgufWriter, TensorSpec};
