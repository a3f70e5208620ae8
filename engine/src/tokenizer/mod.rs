//! Byte-level BPE from a model file's own vocabulary.

mod error;
mod stream;
mod tokenizer;

pub use error::TokenizerError;
pub use stream::Utf8Stream;
pub use tokenizer::{Specials, Tokenizer};
