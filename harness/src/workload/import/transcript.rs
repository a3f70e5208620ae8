//! Chat transcripts: one object with `messages` a line, as chat APIs take them.

use serde_json::Value;

use super::conversation::{Turn, requests};
use super::items::{Item, lines};
use super::plan::{Bad, Options, Request};

/// The requests of each line of a file.
pub(super) fn read(text: &str, options: &Options) -> Vec<Result<Vec<Request>, Bad>> {
    lines(text)
        .into_iter()
        .map(|item| one(item, options))
        .collect()
}

fn one(item: Item, options: &Options) -> Result<Vec<Request>, Bad> {
    let (line, value) = item?;
    let bad = |message: String| Bad { line, message };
    let shape = r#"a line is {"messages": [{"role": "user", "content": "..."}, ...]}"#;
    let Some(messages) = value["messages"].as_array() else {
        return Err(bad(format!("no list `messages`; {shape}")));
    };
    let mut turns = Vec::with_capacity(messages.len());
    for (number, message) in (1..).zip(messages) {
        let role = match message["role"].as_str() {
            Some("system") => "system",
            Some("developer") => "developer",
            Some("user") => "user",
            Some("assistant") => "assistant",
            Some("tool") => "tool",
            other => {
                let found = other.map_or("none".to_owned(), |role| format!("{role:?}"));
                return Err(bad(format!(
                    "message {number} has the role {found}; one of system, developer, user, assistant, tool is known"
                )));
            }
        };
        let calls = role == "assistant" && message["tool_calls"].is_array();
        let speaks = match &message["content"] {
            Value::String(_) => true,
            Value::Array(parts) => parts.iter().all(Value::is_object),
            _ => calls,
        };
        if !speaks {
            return Err(bad(format!(
                "message {number} has no `content`: a text, or a list of parts; {shape}"
            )));
        }
        turns.push(Turn {
            role,
            message: message.clone(),
        });
    }
    let tools = value.get("tools").filter(|tools| tools.is_array());
    requests(line, &turns, tools, options)
}
