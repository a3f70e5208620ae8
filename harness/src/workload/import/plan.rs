//! What is imported, and how.

use std::path::PathBuf;

use super::super::Sampling;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `[{"conversations": [{"from": "human", "value": ...}, ...]}, ...]`, or one such object a line.
    Sharegpt,
    /// One `{"timestamp", "input_length", "output_length", "hash_ids"}` a line.
    Mooncake,
    /// One `{"messages": [{"role", "content"}, ...]}` a line.
    Jsonl,
}

impl Format {
    /// As the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sharegpt => "sharegpt",
            Self::Mooncake => "mooncake",
            Self::Jsonl => "jsonl",
        }
    }
}

/// Which turns of a conversation become requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// The first of the user's.
    First,
    /// The last of the user's, with everything before it.
    Last,
    /// Each of the user's, with everything before it.
    Each,
}

/// Which requests are kept of those that fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only the first so many.
    pub first: Option<usize>,
    /// So many at random, in the order of the file.
    pub choose: Option<usize>,
    /// Seed of that choice.
    pub choose_seed: u64,
    /// Least prompt tokens.
    pub min_tokens: Option<u64>,
    /// Most prompt tokens.
    pub max_tokens: Option<u64>,
}

/// An import.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the file is.
    pub format: Format,
    /// The file.
    pub file: PathBuf,
    /// The folder to be made, new or empty.
    pub out: PathBuf,
    /// Which requests.
    pub choice: Choice,
    /// Which turns; conversations only.
    pub turns: Turns,
    /// Limit of each answer; where the format has a length of its own, that is taken instead.
    pub answer_tokens: u64,
    /// Where bodies will be posted: a path that ends in `/chat/completions` takes messages, any
    /// other a prompt.
    pub path: String,
    /// `model` in each body.
    pub model: String,
    /// All sampling fields.
    pub sampling: Sampling,
    /// Leave bad lines out and count them, where otherwise the first one ends the import.
    pub skip_bad: bool,
    /// Mooncake: tokens of a block of the trace.
    pub block_tokens: u64,
    /// Mooncake: tokens that a word of the made text is taken to have.
    pub tokens_per_word: f64,
    /// Conversations: bytes of text that a token is taken to have.
    pub bytes_per_token: f64,
}

/// How an import went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Bodies written.
    pub bodies: usize,
    /// Requests in the file.
    pub seen: usize,
    /// Bad lines left out, in words.
    pub skipped: Vec<String>,
    /// What was taken to be so.
    pub assumed: Vec<String>,
}

/// A request of the source.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    /// Line on which it begins.
    pub(super) line: usize,
    /// `messages`, or a text.
    pub(super) prompt: Prompt,
    /// Prompt tokens: stated by the source, or estimated.
    pub(super) tokens: u64,
    /// Length of the answer, where the source states one.
    pub(super) answer_tokens: Option<u64>,
    /// Milliseconds, where the source has times.
    pub(super) at_ms: Option<f64>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Prompt {
    /// A chat: messages and, where there are some, tools.
    Chat {
        /// As in a body.
        messages: Vec<serde_json::Value>,
        /// As in a body.
        tools: Option<serde_json::Value>,
    },
    /// A plain text, made for a size.
    Text(String),
}

/// What is wrong with an item: line, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) line: usize,
    pub(super) message: String,
}
