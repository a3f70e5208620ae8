//! What can be wrong with a vocabulary.

/// A vocabulary that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file's metadata lacks or garbles something.
    #[error(transparent)]
    Gguf(#[from] crate::formats::gguf::GgufError),
    /// A pre-tokenizer that is not known here.
    #[error("pre-tokenizer `{name}` is not supported; supported are {supported}")]
    UnknownPre {
        /// As named in `tokenizer.ggml.pre`.
        name: String,
        /// The list.
        supported: &'static str,
    },
}
