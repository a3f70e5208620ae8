//! Why a file cannot be served.

/// A model that cannot be loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The container is at fault.
    #[error(transparent)]
    Gguf(#[from] crate::formats::gguf::GgufError),
    /// The vocabulary is at fault.
    #[error(transparent)]
    Tokenizer(#[from] crate::tokenizer::TokenizerError),
    /// The chat template is at fault.
    #[error(transparent)]
    Template(#[from] crate::chat::TemplateError),
    /// Anything else, with what would be right.
    #[error("{0}")]
    Unsupported(String),
}
