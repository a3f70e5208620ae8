//! One body, read.

use serde::Serialize;
use serde_json::Value;

use super::fields::{FIELDS, LIMITS};
use crate::archive::sha256_hex;
use crate::workload::message::text_bytes;

/// Which kind of route a body is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// It has `messages`.
    Chat,
    /// It has a `prompt`.
    Text,
}

/// What a body says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BodyFacts {
    /// As it is shown.
    pub name: String,
    /// Size.
    pub bytes: u64,
    /// sha256.
    pub sha256: String,
    /// Absent where it has neither messages nor a prompt, or both.
    pub route: Option<Route>,
    /// Messages of a chat; 1 for a plain prompt.
    pub turns: u64,
    /// Bytes of the prompt's text, tools included, without a template's own.
    pub text_bytes: u64,
    /// Token ids where the prompt is made of them.
    pub ids: Option<u64>,
    /// Most tokens of the answer.
    pub max_tokens: Option<u64>,
    /// Whether the answer is asked for as a stream.
    pub stream: Option<bool>,
    /// Whether the stream ends with counts.
    pub include_usage: bool,
    /// `temperature`.
    pub temperature: Option<f64>,
    /// What the index says was redacted.
    pub redacted: Vec<String>,
    /// Fields that not every known server reads, with those that do.
    pub only_some: Vec<(String, Vec<&'static str>)>,
    /// The body itself.
    #[serde(skip)]
    pub value: Value,
    /// Its bytes.
    #[serde(skip)]
    pub raw: Vec<u8>,
}

impl BodyFacts {
    /// Reads a body; the error is why it is none.
    pub fn read(name: &str, raw: Vec<u8>) -> Result<Self, String> {
        let value = crate::archive::parse_unique(&raw)
            .map_err(|e| format!("not JSON that all servers read alike: {e}"))?;
        let Some(fields) = value.as_object() else {
            return Err(
                "not a JSON object: a request body is {\"messages\": [...], ...}".to_owned(),
            );
        };
        let messages = fields.get("messages").and_then(Value::as_array);
        let prompt = fields.get("prompt");
        let route = match (messages, prompt) {
            (Some(_), None) => Some(Route::Chat),
            (None, Some(Value::String(_) | Value::Array(_))) => Some(Route::Text),
            _ => None,
        };
        let said: usize = messages.into_iter().flatten().map(message_bytes).sum();
        let tools = fields
            .get("tools")
            .filter(|t| t.is_array())
            .map_or(0, |t| t.to_string().len());
        let plain = prompt.and_then(Value::as_str).map_or(0, str::len);
        let number = |name: &str| fields.get(name).and_then(Value::as_f64);
        let mut only_some = Vec::new();
        for name in fields.keys() {
            match FIELDS.iter().find(|(known, _)| known == name) {
                Some((_, readers)) if readers.len() == 4 => {}
                Some((_, readers)) => {
                    only_some.push((name.clone(), readers.iter().map(|r| r.name()).collect()));
                }
                None => only_some.push((name.clone(), Vec::new())),
            }
        }
        Ok(Self {
            name: name.to_owned(),
            bytes: raw.len() as u64,
            sha256: sha256_hex(&raw),
            route,
            turns: messages.map_or(1, |m| m.len() as u64),
            text_bytes: (said + tools + plain) as u64,
            ids: prompt
                .and_then(Value::as_array)
                .filter(|ids| ids.iter().all(Value::is_u64))
                .map(|ids| ids.len() as u64),
            max_tokens: LIMITS
                .iter()
                .find_map(|name| fields.get(*name).and_then(Value::as_u64)),
            stream: fields.get("stream").and_then(Value::as_bool),
            include_usage: value["stream_options"]["include_usage"] == Value::Bool(true),
            temperature: number("temperature"),
            redacted: Vec::new(),
            only_some,
            raw,
            value,
        })
    }

    /// Whether a field is there with a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some_and(|v| !v.is_null())
    }
}

/// Bytes of text that a message puts into the prompt.
fn message_bytes(message: &Value) -> usize {
    let calls = message
        .get("tool_calls")
        .filter(|c| c.is_array())
        .map_or(0, |c| c.to_string().len());
    let thought = message["reasoning_content"].as_str().map_or(0, str::len);
    text_bytes(message) + calls + thought
}
