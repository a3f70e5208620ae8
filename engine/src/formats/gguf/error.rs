//! What can be wrong with a GGUF file.

use std::path::PathBuf;

use crate::formats::blocks::SUPPORTED_TYPES;

/// A GGUF file that cannot be used: what is wrong, where, and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each field is named in its variant's message")]
pub enum GgufError {
    /// The file could not be opened, read or written.
    #[error("cannot read {path}: {source}")]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// One part of a split file is at fault.
    #[error("in {path}: {source}")]
    InPart {
        path: PathBuf,
        source: Box<GgufError>,
    },
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: the first bytes are {found:02x?}; expected the letters GGUF")]
    BadMagic { found: [u8; 4] },
    /// Written for a big-endian machine.
    #[error("the file is big-endian; convert it to little-endian (gguf-py: gguf_convert_endian)")]
    BigEndian,
    /// A version this reader does not know.
    #[error("GGUF version {version} is not supported; expected 2 or 3")]
    UnsupportedVersion { version: u32 },
    /// The file ends inside its header, metadata or tensor descriptions.
    #[error(
        "the file is truncated in {what}: {needed} bytes needed at offset {offset}, \
         {available} left; download it again"
    )]
    Truncated {
        what: String,
        offset: u64,
        needed: u64,
        available: u64,
    },
    /// A string's length runs past the end of the file.
    #[error(
        "{what} at offset {offset} claims {len} bytes, but only {available} follow; \
         the file is truncated or corrupt"
    )]
    StringPastEnd {
        what: String,
        offset: u64,
        len: u64,
        available: u64,
    },
    /// A string that is not UTF-8.
    #[error("{what} at offset {offset} is not valid UTF-8; the file is corrupt")]
    NotUtf8 { what: String, offset: u64 },
    /// A count that the rest of the file cannot hold.
    #[error("{what} claims {count} entries, but there is room for at most {most}")]
    AbsurdCount { what: String, count: u64, most: u64 },
    /// The same metadata key twice.
    #[error("metadata key `{key}` appears twice; each key may appear once")]
    DuplicateKey { key: String },
    /// The same tensor name twice.
    #[error("tensor `{name}` appears twice; each name may appear once")]
    DuplicateTensor { name: String },
    /// A value type that the format does not define.
    #[error("metadata key `{key}` has value type {number}; GGUF defines 0 to 12")]
    UnknownValueType { key: String, number: u32 },
    /// A boolean that is neither 0 nor 1.
    #[error("metadata key `{key}` holds the boolean {found}; expected 0 or 1")]
    BadBool { key: String, found: u8 },
    /// An array of arrays.
    #[error("metadata key `{key}` is an array of arrays; only flat arrays are supported")]
    NestedArray { key: String },
    /// `general.alignment` is unusable.
    #[error("general.alignment is {found}; expected a power of two between 1 and 2^30")]
    BadAlignment { found: String },
    /// No dimensions, or more than four.
    #[error("tensor `{name}` has {count} dimensions; expected 1 to 4")]
    BadDimCount { name: String, count: u32 },
    /// A dimension of zero.
    #[error("tensor `{name}` has a dimension of zero in {dims:?}; each must be at least 1")]
    ZeroDim { name: String, dims: Vec<u64> },
    /// More elements than any file could hold.
    #[error("tensor `{name}` of dimensions {dims:?} overflows; the file is corrupt")]
    TooManyElements { name: String, dims: Vec<u64> },
    /// The row length is no multiple of the block length.
    #[error("tensor `{name}` has rows of {cols} {ty} weights; expected a multiple of {block}")]
    PartialBlock {
        name: String,
        cols: u64,
        ty: &'static str,
        block: usize,
    },
    /// A type that this engine does not read.
    #[error("tensor `{name}` is {ty}, which is not supported; supported are {SUPPORTED_TYPES}")]
    UnsupportedType { name: String, ty: String },
    /// Data that does not start on the alignment.
    #[error("tensor `{name}` starts at offset {offset}; expected a multiple of {alignment}")]
    Unaligned {
        name: String,
        offset: u64,
        alignment: u64,
    },
    /// Data beyond the end of the file.
    #[error(
        "tensor `{name}` needs {len} bytes at offset {offset} of the file, which ends at \
         {file_len}; the file is truncated, download it again"
    )]
    TensorPastEnd {
        name: String,
        offset: u64,
        len: u64,
        file_len: u64,
    },
    /// Two tensors share bytes.
    #[error("tensors `{first}` and `{second}` overlap in the file; each needs its own bytes")]
    Overlap { first: String, second: String },
    /// A part of a split file that is not there.
    #[error("part {part} of {count} is missing; expected {path}")]
    MissingPart {
        part: usize,
        count: usize,
        path: PathBuf,
    },
    /// A part that does not belong where it is.
    #[error("{path}: `{key}` is {found}; expected {expected}")]
    SplitMismatch {
        path: PathBuf,
        key: &'static str,
        found: String,
        expected: u64,
    },
    /// A split file under a name that does not lead to the other parts.
    #[error(
        "{path} is one of {count} parts; name them NAME-00001-of-{count:05}.gguf and so on, \
         in one folder"
    )]
    SplitName { path: PathBuf, count: u64 },
    /// A metadata key that the model needs is absent.
    #[error("metadata key `{key}` is missing; expected {expected}")]
    MissingKey { key: String, expected: &'static str },
    /// A metadata key holds another type than the model needs.
    #[error("metadata key `{key}` holds {found}; expected {expected}")]
    WrongType {
        key: String,
        found: String,
        expected: &'static str,
    },
    /// A scale or weight that is NaN or infinite.
    #[error(
        "tensor `{name}` ({ty}), row {row}, block {block}: {what}; the file is corrupt, \
         download or convert it again"
    )]
    BadValue {
        name: String,
        ty: &'static str,
        row: usize,
        block: usize,
        what: &'static str,
    },
}
