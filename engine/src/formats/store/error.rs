//! What can be wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

use crate::formats::gguf::GgufError;

/// Why a store could not be written, opened or turned back.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The source is not what it was when packing began.
    #[error("{}: the file changed while it was packed; pack it again", .0.display())]
    Changed(PathBuf),
    /// The store would take its source's place.
    #[error("{}: the store cannot be written over the model that it is made of", .0.display())]
    OverSource(PathBuf),
    /// Not enough room for the store.
    #[error("{}: the store takes {needed} bytes and {free} are free", path.display())]
    NoRoom {
        /// The file under work.
        path: PathBuf,
        /// Bytes of the store.
        needed: u64,
        /// Bytes to be had.
        free: u64,
    },
    /// The first bytes are not a store's.
    #[error("{}: not a store (it starts with {found:02x?})", path.display())]
    BadMagic {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// Written by another version of this program.
    #[error("{}: store version {found}, this program reads {expected}; pack the model again", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The version read here.
        expected: u32,
    },
    /// The prelude does not say what it must.
    #[error("{}: the store's prelude is damaged: {what}", path.display())]
    Prelude {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file ends too early or too late.
    #[error("{}: {found} bytes long, a store of this source has {expected}", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// The length it should have.
        expected: u64,
    },
    /// The content is not what was packed.
    #[error("{}: part {part} turns back into a file with sha256 {found}, the source had {expected}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Which part, from 1.
        part: usize,
        /// Hash of what was rebuilt.
        found: String,
        /// Hash of the source.
        expected: String,
    },
    /// The model inside cannot be read.
    #[error(transparent)]
    Gguf(#[from] GgufError),
}

impl StoreError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
