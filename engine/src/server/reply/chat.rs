//! `chat.completion` and its chunks.

use serde_json::{Map, Value, json};

use super::Reply;
use super::logprobs::entry;
use super::timings::{close, usage};
use crate::chat::Delta;
use crate::server::generation::{Outcome, Step, StopReason};
use crate::tokenizer::Tokenizer;

/// What is fixed for one response.
#[derive(Clone, Debug)]
pub struct ChatReply {
    /// `chatcmpl-...`.
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
    /// Whether the role has been sent.
    pub role_sent: bool,
    /// Entries of tokens that no event stands for yet.
    pub waiting: Vec<Value>,
}

impl ChatReply {
    fn chunk(&self, delta: &Value, finish: Option<&str>, logprobs: Option<Vec<Value>>) -> Value {
        let mut choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        if let Some(content) = logprobs {
            choice["logprobs"] = json!({ "content": content });
        }
        self.envelope("chat.completion.chunk", vec![choice])
    }
    fn envelope(&self, object: &str, choices: Vec<Value>) -> Value {
        let mut out = json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": fingerprint(),
        });
        out["choices"] = Value::Array(choices);
        out
    }
    fn take_logprobs(&mut self) -> Option<Vec<Value>> {
        self.logprobs.then(|| std::mem::take(&mut self.waiting))
    }
}

/// Names the build.
pub fn fingerprint() -> String {
    format!("palindrome-engine-{}", env!("CARGO_PKG_VERSION"))
}

impl Reply for ChatReply {
    fn step(&mut self, tokenizer: &Tokenizer, step: Step) -> Vec<Value> {
        let mut events = Vec::new();
        if !self.role_sent {
            self.role_sent = true;
            events.push(self.chunk(&json!({ "role": "assistant", "content": "" }), None, None));
        }
        if self.logprobs {
            self.waiting.push(entry(tokenizer, &step.token));
        }
        if step.deltas.is_empty() && !self.return_tokens {
            return events;
        }
        let logprobs = self.take_logprobs();
        let mut event = self.chunk(&merge(step.deltas, "content"), None, logprobs);
        if self.return_tokens {
            event["tokens"] = json!([step.token.id]);
        }
        events.push(event);
        events
    }
    fn end(&mut self, _tokenizer: &Tokenizer, outcome: Outcome) -> Vec<Value> {
        let mut events = Vec::new();
        if !outcome.deltas.is_empty() {
            let logprobs = self.take_logprobs();
            events.push(self.chunk(&merge(outcome.deltas, ""), None, logprobs));
        }
        let logprobs = self.take_logprobs().filter(|waiting| !waiting.is_empty());
        let finish = finish_reason(&outcome.stop, outcome.tool_called);
        events.push(self.chunk(&json!({}), Some(finish), logprobs));
        if self.include_usage {
            let mut last = self.envelope("chat.completion.chunk", Vec::new());
            last["usage"] = usage(&outcome.figures);
            events.push(last);
        }
        if let Some(last) = events.last_mut() {
            close(last, &outcome.figures);
        }
        events
    }
    fn whole(&mut self, tokenizer: &Tokenizer, steps: Vec<Step>, outcome: Outcome) -> Value {
        let tokens: Vec<u32> = steps.iter().map(|step| step.token.id).collect();
        let entries: Vec<Value> = if self.logprobs {
            steps
                .iter()
                .map(|step| entry(tokenizer, &step.token))
                .collect()
        } else {
            Vec::new()
        };
        let deltas = steps
            .into_iter()
            .flat_map(|step| step.deltas)
            .chain(outcome.deltas)
            .collect();
        let mut message = json!({ "role": "assistant", "content": "" });
        if let (Some(message), Value::Object(merged)) = (message.as_object_mut(), merge(deltas, ""))
        {
            message.extend(merged);
        }
        if outcome.tool_called && message["content"] == "" {
            message["content"] = Value::Null;
        }
        if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            for call in calls.iter_mut().filter_map(Value::as_object_mut) {
                call.remove("index");
            }
        }
        let mut choice = json!({
            "index": 0,
            "message": message,
            "finish_reason": finish_reason(&outcome.stop, outcome.tool_called),
        });
        if self.logprobs {
            choice["logprobs"] = json!({ "content": entries });
        }
        let mut out = self.envelope("chat.completion", vec![choice]);
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

fn finish_reason(stop: &StopReason, tool_called: bool) -> &'static str {
    match stop {
        StopReason::Length => "length",
        _ if tool_called => "tool_calls",
        _ => "stop",
    }
}

/// One `delta` (or `message` part) out of several; with nothing in it, `empty` names the field
/// that is set to "".
fn merge(deltas: Vec<Delta>, empty: &str) -> Value {
    let mut out = Map::new();
    let mut calls: Vec<Value> = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Reasoning(text) => append(&mut out, "reasoning_content", &text),
            Delta::Content(text) => append(&mut out, "content", &text),
            Delta::ToolCallStart { index, id, name } => calls.push(json!({
                "index": index,
                "id": id,
                "type": "function",
                "function": { "name": name, "arguments": "" },
            })),
            Delta::ToolCallArguments { index, fragment } => {
                let known = calls.iter_mut().find(|call| call["index"] == json!(index));
                if let Some(call) = known {
                    let arguments = &mut call["function"]["arguments"];
                    let longer = arguments.as_str().unwrap_or_default().to_owned() + &fragment;
                    *arguments = json!(longer);
                } else {
                    calls.push(json!({ "index": index, "function": { "arguments": fragment } }));
                }
            }
        }
    }
    if !calls.is_empty() {
        out.insert("tool_calls".into(), Value::Array(calls));
    }
    if out.is_empty() && !empty.is_empty() {
        out.insert(empty.into(), json!(""));
    }
    Value::Object(out)
}

fn append(out: &mut Map<String, Value>, name: &str, text: &str) {
    match out.get_mut(name) {
        Some(Value::String(have)) => have.push_str(text),
        _ => {
            out.insert(name.into(), json!(text));
        }
    }
}
