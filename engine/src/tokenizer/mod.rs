//! Byte-level BPE from a model file's own vocabulary.

mod bpe;
pub(crate) mod byte_text;
mod classes;
mod error;
mod o200k;
mod pre;
mod stream;
#[expect(
    clippy::module_inception,
    reason = "the type of this name is the module's subject"
)]
mod tokenizer;
mod vocabulary;

pub use error::TokenizerError;
pub use o200k::{O200k, merges_from_ranks, o200k_harmony};
pub use stream::Utf8Stream;
pub use tokenizer::{Specials, Tokenizer};
pub use vocabulary::Vocabulary;
