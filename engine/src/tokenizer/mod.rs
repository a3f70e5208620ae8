//! Byte-level BPE from a model file's own vocabulary.

mod byte_text;
mod error;
mod o200k;
mod stream;
mod tokenizer;

pub use error::TokenizerError;
pub use o200k::{O200k, merges_from_ranks, o200k_harmony};
pub use stream::Utf8Stream;
pub use tokenizer::{Specials, Tokenizer};
