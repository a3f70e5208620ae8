//! What a chat message holds.

use serde_json::Value;

/// Bytes of text of a message, all its parts together.
pub(super) fn text_bytes(message: &Value) -> usize {
    match &message["content"] {
        Value::String(text) => text.len(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|p| p["text"].as_str())
            .map(str::len)
            .sum(),
        _ => 0,
    }
}
