//! Why a file cannot be made.

use std::path::PathBuf;

/// What was wrong with the request or the disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each field is named in its variant's message")]
pub enum SynthError {
    /// A size that no model of this kind can have.
    #[error("{flag} is {found}; expected {expected}")]
    BadShape {
        flag: &'static str,
        found: u64,
        expected: String,
    },
    /// o200k asked for in a model that is not gpt-oss.
    #[error("o200k's special tokens are gpt-oss's; a Qwen3-MoE model takes a bytes vocabulary")]
    ForeignVocab,
    /// Not enough room.
    #[error(
        "{path} needs {needed} bytes, but only {free} are free on that disk; \
         free some space or choose another folder"
    )]
    NoSpace {
        path: PathBuf,
        needed: u64,
        free: u64,
    },
    /// The file is there already.
    #[error("{path} exists already; choose another name, or pass --force to replace it")]
    Exists { path: PathBuf },
    /// The operating system refused.
    #[error("cannot write {path}: {source}")]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
}
