//! `text_completion` and its chunks (`/v1/completions`).

use serde_json::{Value, json};

use super::Reply;
use super::chat::fingerprint;
use super::logprobs::Lists;
use super::timings::{close, usage};
use crate::chat::Delta;
use crate::server::generation::{Outcome, Step, StopReason};
use crate::tokenizer::Tokenizer;

/// What is fixed for one response.
#[derive(Debug)]
pub struct CompletionReply {
    /// `cmpl-...`.
    pub id: String,
    /// Unix seconds.
    pub created: u64,
    /// The model's name.
    pub model: String,
    /// One event a token, each with its ids.
    pub return_tokens: bool,
    /// Report log-probabilities.
    pub logprobs: bool,
    /// A usage chunk at the end.
    pub include_usage: bool,
    /// Tokens that no event stands for yet.
    pub waiting: Lists,
    /// Characters sent so far.
    pub offset: usize,
    /// Whether any event has gone out.
    pub begun: bool,
}

impl CompletionReply {
    fn event(&mut self, text: &str, finish: Option<&str>) -> Value {
        self.offset += text.chars().count();
        let logprobs = if self.logprobs {
            self.waiting.take()
        } else {
            Value::Null
        };
        self.envelope(json!([{
            "text": text,
            "index": 0,
            "logprobs": logprobs,
            "finish_reason": finish,
        }]))
    }
    fn envelope(&self, choices: Value) -> Value {
        let mut out = json!({
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "system_fingerprint": fingerprint(),
        });
        out["choices"] = choices;
        out
    }
}

impl Reply for CompletionReply {
    fn step(&mut self, tokenizer: &Tokenizer, step: Step) -> Vec<Value> {
        let text = content(step.deltas);
        if self.logprobs {
            self.waiting.push(tokenizer, &step.token, self.offset);
        }
        if text.is_empty() && !self.return_tokens && self.begun {
            return Vec::new();
        }
        self.begun = true;
        let mut event = self.event(&text, None);
        if self.return_tokens {
            event["tokens"] = json!([step.token.id]);
        }
        vec![event]
    }
    fn end(&mut self, _tokenizer: &Tokenizer, outcome: Outcome) -> Vec<Value> {
        let text = content(outcome.deltas);
        let mut events = vec![self.event(&text, Some(finish_reason(&outcome.stop)))];
        if self.include_usage {
            let mut last = self.envelope(json!([]));
            last["usage"] = usage(&outcome.figures);
            events.push(last);
        }
        if let Some(last) = events.last_mut() {
            close(last, &outcome.figures);
        }
        events
    }
    fn whole(&mut self, tokenizer: &Tokenizer, steps: Vec<Step>, outcome: Outcome) -> Value {
        let mut text = String::new();
        let mut tokens = Vec::with_capacity(steps.len());
        for step in steps {
            if self.logprobs {
                self.waiting
                    .push(tokenizer, &step.token, text.chars().count());
            }
            tokens.push(step.token.id);
            text.push_str(&content(step.deltas));
        }
        text.push_str(&content(outcome.deltas));
        let mut out = self.event(&text, Some(finish_reason(&outcome.stop)));
        out["usage"] = usage(&outcome.figures);
        if self.return_tokens {
            out["tokens"] = json!(tokens);
        }
        close(&mut out, &outcome.figures);
        out
    }
    fn ends_in_done(&self) -> bool {
        true
    }
}

fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::Length => "length",
        _ => "stop",
    }
}

/// The text of a plain turn's deltas.
pub(super) fn content(deltas: Vec<Delta>) -> String {
    deltas
        .into_iter()
        .filter_map(|delta| match delta {
            Delta::Content(text) => Some(text),
            _ => None,
        })
        .collect()
}
