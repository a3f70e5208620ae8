//! Why a file cannot be served, and why a forward pass cannot go on.

/// A model that cannot be loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The container is at fault.
    #[error(transparent)]
    Gguf(#[from] crate::formats::gguf::GgufError),
    /// The store is at fault.
    #[error(transparent)]
    Store(#[from] crate::formats::store::StoreError),
    /// The vocabulary is at fault.
    #[error(transparent)]
    Tokenizer(#[from] crate::tokenizer::TokenizerError),
    /// The chat template is at fault.
    #[error(transparent)]
    Template(#[from] crate::chat::TemplateError),
    /// An architecture that this engine has no forward pass for.
    #[error("architecture `{found}` is not supported; supported are {supported}")]
    Architecture {
        /// `general.architecture`.
        found: String,
        /// The names that are.
        supported: String,
    },
    /// A tensor that the architecture needs is not in the file.
    #[error("tensor `{name}` is missing; expected one of shape {expected:?}")]
    MissingTensor {
        /// Its name.
        name: String,
        /// Dimensions in GGUF order.
        expected: Vec<u64>,
    },
    /// A tensor of another shape than the metadata says.
    #[error("tensor `{name}` has shape {found:?}, expected {expected:?}")]
    TensorShape {
        /// Its name.
        name: String,
        /// Dimensions in the file.
        found: Vec<u64>,
        /// Dimensions that the metadata asks for.
        expected: Vec<u64>,
    },
    /// A tensor with values that nothing can be computed with.
    #[error("tensor `{name}`, row {row}, block {block}: {what}")]
    TensorValue {
        /// Its name.
        name: String,
        /// Row, counted over all experts.
        row: usize,
        /// Block within the row.
        block: usize,
        /// What it is.
        what: &'static str,
    },
    /// A metadata value out of its range, or at odds with another.
    #[error("metadata key `{key}` is {found}; expected {expected}")]
    Config {
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// Anything else, with what would be right.
    #[error("{0}")]
    Unsupported(String),
}

/// A forward pass that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// A number that is not finite, or beyond what activations can hold (2^34).
    #[error("{what} is not finite (or beyond 2^34) at position {position}, {place}")]
    NonFinite {
        /// Which value.
        what: &'static str,
        /// Position in the sequence.
        position: usize,
        /// Layer, or the output.
        place: String,
    },
    /// A key or value beyond what f16 can hold.
    #[error(
        "a key or value is beyond f16's range (65504) at position {position}, {place}; \
         `--kv-type f32` can hold it"
    )]
    BeyondF16 {
        /// Position in the sequence.
        position: usize,
        /// Layer.
        place: String,
    },
    /// A token id outside the vocabulary.
    #[error("token id {id} is outside the vocabulary of {vocab}")]
    BadToken {
        /// The id.
        id: u32,
        /// Vocabulary size.
        vocab: usize,
    },
    /// The sequence would outgrow the context.
    #[error("{needed} positions do not fit the context of {ctx}")]
    ContextFull {
        /// Positions asked for.
        needed: usize,
        /// Context.
        ctx: usize,
    },
}
