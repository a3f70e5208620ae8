//! The shapes of answers: one writer for each route, whole and in pieces.

mod chat;
mod completion;
mod logprobs;
mod native;
mod timings;

pub use chat::ChatReply;
pub use chat::fingerprint;
pub use completion::CompletionReply;
pub use logprobs::Lists;
pub use native::{NativeReply, settings};
pub use timings::so_far;

use serde_json::Value;

use super::generation::{Outcome, Step};
use crate::tokenizer::Tokenizer;

/// Writes answers of one shape.
pub trait Reply: Send + 'static {
    /// The events that a token gives rise to, possibly none.
    fn step(&mut self, tokenizer: &Tokenizer, step: Step) -> Vec<Value>;
    /// The last events.
    fn end(&mut self, tokenizer: &Tokenizer, outcome: Outcome) -> Vec<Value>;
    /// The whole answer at once.
    fn whole(&mut self, tokenizer: &Tokenizer, steps: Vec<Step>, outcome: Outcome) -> Value;
    /// Whether the stream ends in `[DONE]`.
    fn ends_in_done(&self) -> bool;
}
