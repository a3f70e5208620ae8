//! Opening a GGUF file (or all parts of a split one) and finding tensors in it.

use std::path::Path;

use super::{GgufError, Metadata};
use crate::formats::blocks::GgmlType;

/// Where a tensor lies and what shape it has.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// Name, as in the file.
    pub name: String,
    /// Element type.
    pub ty: GgmlType,
    /// Dimensions in GGUF order: the first is the row length (input width), then rows, then
    /// experts. Never empty, at most four.
    pub dims: Vec<u64>,
    /// Which part of a split file.
    pub part: usize,
    /// Byte offset inside that part's mapping.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

/// An open model file; tensors are views into its mappings.
pub struct GgufFile {
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorInfo>,
}

impl GgufFile {
    /// Opens `path`. For `NAME-00001-of-0000N.gguf` all parts are opened.
    pub fn open(_path: &Path) -> Result<Self, GgufError> {
        todo!()
    }
    /// Parses a whole single-part file from memory (tests, fuzzing).
    pub fn parse(_bytes: Vec<u8>) -> Result<Self, GgufError> {
        todo!()
    }
    /// The key-value part.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    /// All tensors in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }
    /// A tensor by name.
    pub fn tensor(&self, _name: &str) -> Option<&TensorInfo> {
        todo!()
    }
    /// A tensor's bytes.
    pub fn bytes(&self, _tensor: &TensorInfo) -> &[u8] {
        todo!()
    }
}
