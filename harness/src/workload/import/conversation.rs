//! From a conversation to the requests in it.

use serde_json::{Value, json};

use super::plan::{Bad, Options, Prompt, Request, Turns};
use crate::workload::message::text_bytes;

/// A turn: the role as a body has it, and the message.
pub(super) struct Turn {
    pub(super) role: &'static str,
    pub(super) message: Value,
}

impl Turn {
    pub(super) fn text(role: &'static str, text: &str) -> Self {
        Self {
            role,
            message: json!({ "role": role, "content": text }),
        }
    }
}

/// The requests of a conversation: each ends with a turn that is answered (the user's, or a
/// tool's result).
pub(super) fn requests(
    line: usize,
    turns: &[Turn],
    tools: Option<&Value>,
    options: &Options,
) -> Result<Vec<Request>, Bad> {
    let asks = |at: &usize| matches!(turns[*at].role, "user" | "tool");
    let all: Vec<usize> = (0..turns.len()).filter(asks).collect();
    let chosen = match options.turns {
        Turns::First => all.first().into_iter().copied().collect(),
        Turns::Last => all.last().into_iter().copied().collect(),
        Turns::Each => all,
    };
    if chosen.is_empty() {
        let message = "the conversation has no turn of the user to answer".to_owned();
        return Err(Bad { line, message });
    }
    let request = |end: usize| {
        let messages: Vec<Value> = turns[..=end].iter().map(|t| t.message.clone()).collect();
        let bytes: usize = messages.iter().map(text_bytes).sum();
        Request {
            line,
            tokens: (bytes as f64 / options.bytes_per_token).ceil() as u64,
            answer_tokens: None,
            at_ms: None,
            prompt: Prompt::Chat {
                messages,
                tools: tools.cloned(),
            },
        }
    };
    Ok(chosen.into_iter().map(request).collect())
}
