//! Encoding and decoding.

use super::TokenizerError;
use crate::formats::gguf::Metadata;

/// What to do with the text of special tokens inside a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// `<|start|>` becomes the token (rendered templates).
    Parse,
    /// It is ordinary text (user input).
    AsText,
}

/// A tokenizer built from a model file.
#[derive(Debug)]
pub struct Tokenizer {}

impl Tokenizer {
    /// Reads `tokenizer.ggml.*`.
    pub fn from_metadata(_meta: &Metadata) -> Result<Self, TokenizerError> {
        todo!()
    }
    /// Text to token ids; no BOS is added.
    pub fn encode(&self, _text: &str, _specials: Specials) -> Vec<u32> {
        todo!()
    }
    /// The token's bytes; empty for an id outside the vocabulary. Control tokens give their text.
    pub fn token_bytes(&self, _id: u32) -> &[u8] {
        todo!()
    }
    /// All bytes of `ids` in a row.
    pub fn decode(&self, _ids: &[u32]) -> Vec<u8> {
        todo!()
    }
    /// Number of tokens.
    pub fn vocab_size(&self) -> usize {
        todo!()
    }
    /// The id of a token by its exact text (`<|channel|>`).
    pub fn id_of(&self, _text: &str) -> Option<u32> {
        todo!()
    }
    /// Control (or user-defined special) token.
    pub fn is_special(&self, _id: u32) -> bool {
        todo!()
    }
    /// Beginning-of-sequence token, if the file asks for it to be added (`add_bos_token`).
    pub fn bos_to_add(&self) -> Option<u32> {
        todo!()
    }
    /// Tokens that end a generation (eos, `<|return|>`, `<|call|>`, `<|im_end|>` ...; never
    /// harmony's `<|end|>`), sorted.
    pub fn end_of_generation(&self) -> &[u32] {
        todo!()
    }
}
