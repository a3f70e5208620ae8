//! What can be wrong with a vocabulary.

/// A vocabulary that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file's metadata lacks or garbles something.
    #[error(transparent)]
    Gguf(#[from] crate::formats::gguf::GgufError),
    /// Not byte-level BPE.
    #[error("tokenizer model `{name}` is not supported; supported is `gpt2` (byte-level BPE)")]
    UnknownModel {
        /// As named in `tokenizer.ggml.model`.
        name: String,
    },
    /// A pre-tokenizer that is not known here.
    #[error("pre-tokenizer `{name}` is not supported; supported are {supported}")]
    UnknownPre {
        /// As named in `tokenizer.ggml.pre`.
        name: String,
        /// The list.
        supported: &'static str,
    },
    /// No tokens, or more than ids can count.
    #[error("the vocabulary has {0} tokens; expected 1 to 2147483647")]
    Size(usize),
    /// `tokenizer.ggml.token_type` and `tokenizer.ggml.tokens` differ in length.
    #[error(
        "the vocabulary has {tokens} tokens and {types} token types; expected one type a token"
    )]
    TypeCount {
        /// Length of `tokenizer.ggml.tokens`.
        tokens: usize,
        /// Length of `tokenizer.ggml.token_type`.
        types: usize,
    },
    /// A token type outside GGUF's list.
    #[error("token {id} has type {ty}; expected 1 to 6")]
    TokenType {
        /// The token.
        id: usize,
        /// Its type.
        ty: i64,
    },
    /// A token without text.
    #[error("token {id} has no text")]
    EmptyToken {
        /// The token.
        id: usize,
    },
    /// Two tokens of the same text.
    #[error("tokens {first} and {second} are both `{text}`; expected each text once")]
    DuplicateToken {
        /// The lower id.
        first: u32,
        /// The higher id.
        second: usize,
        /// Their text, as in the file.
        text: String,
    },
    /// A merge that cannot be carried out.
    #[error("merge {index} is `{merge}`; {problem}")]
    Merge {
        /// Position in `tokenizer.ggml.merges`.
        index: usize,
        /// The entry.
        merge: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A special token's id outside the vocabulary.
    #[error("`{key}` is {id}; expected an id below {vocab_size}")]
    IdOutOfRange {
        /// The metadata key.
        key: &'static str,
        /// The id.
        id: u32,
        /// Number of tokens.
        vocab_size: usize,
    },
    /// A newline or printable ASCII byte that no token stands for.
    #[error(
        "no token stands for byte 0x{byte:02x}; expected at least newline and printable ASCII as \
         single-byte tokens"
    )]
    MissingByte {
        /// The byte.
        byte: u8,
    },
}
