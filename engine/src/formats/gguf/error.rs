//! What can be wrong with a GGUF file.

/// A GGUF file that cannot be used: what is wrong, where, and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file could not be opened or read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: std::path::PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A metadata key that the model needs is absent.
    #[error("metadata key `{key}` is missing; expected {expected}")]
    MissingKey {
        /// The key.
        key: String,
        /// What it should hold.
        expected: &'static str,
    },
}
