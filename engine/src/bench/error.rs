//! Why a benchmark could not be made.

use crate::formats::gguf::GgufError;
use crate::formats::store::StoreError;
use crate::model::{ForwardError, ModelError};

/// Why a benchmark could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The model did not load.
    #[error(transparent)]
    Load(#[from] ModelError),
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A forward pass failed.
    #[error("{test}: {source}")]
    Forward {
        /// Which test, such as `pp512`.
        test: String,
        /// What happened.
        source: ForwardError,
    },
}
