//! GGUF containers, versions 2 and 3, split files too, memory-mapped.

mod error;
mod file;
mod metadata;

pub use error::GgufError;
pub use file::{GgufFile, TensorInfo};
pub use metadata::{Metadata, Value};
