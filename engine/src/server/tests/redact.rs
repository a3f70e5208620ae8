//! Answers without what differs from run to run.

use serde_json::{Value, json};

const VARYING: [&str; 9] = [
    "id",
    "created",
    "prompt_ms",
    "prompt_per_token_ms",
    "prompt_per_second",
    "predicted_ms",
    "predicted_per_token_ms",
    "predicted_per_second",
    "token_hashes",
];

/// Replaces what varies by its name.
pub fn redact(mut value: Value) -> Value {
    walk(&mut value);
    value
}

fn walk(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, item) in map.iter_mut() {
                let is_token = name == "id" && item.is_number();
                if VARYING.contains(&name.as_str()) && !item.is_null() && !is_token {
                    *item = json!(format!("[{name}]"));
                } else {
                    walk(item);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(walk),
        _ => {}
    }
}

/// One line an event.
pub fn lines(events: Vec<Value>) -> String {
    events
        .into_iter()
        .map(|event| redact(event).to_string())
        .collect::<Vec<_>>()
        .join("\n")
}
