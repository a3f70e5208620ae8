//! Chat messages: checked, and their contents made plain strings.

use serde_json::{Map, Value, json};

use super::fields::{Fields, short};
use crate::server::ApiError;

const ROLES: &str = "system, developer, user, assistant or tool";

/// Validates OpenAI-shaped messages. Lists of text parts become one string, the parts joined by
/// line breaks as llama-server joins them.
pub fn messages(fields: Fields<'_>) -> Result<Vec<Value>, ApiError> {
    let list = fields.array("messages")?.ok_or_else(|| {
        ApiError::invalid("`messages` is missing; a list of {\"role\", \"content\"} is expected")
    })?;
    if list.is_empty() {
        return Err(ApiError::invalid("`messages` must not be empty"));
    }
    list.iter()
        .enumerate()
        .map(|(index, message)| one(&format!("messages[{index}]"), message))
        .collect()
}

fn one(at: &str, message: &Value) -> Result<Value, ApiError> {
    let Some(map) = message.as_object() else {
        return Err(ApiError::invalid(format!(
            "`{at}` must be an object, got {}",
            short(message)
        )));
    };
    let role = match map.get("role") {
        Some(Value::String(role)) => role.as_str(),
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "`{at}.role` must be {ROLES}, got {}",
                short(other)
            )));
        }
        None => {
            return Err(ApiError::invalid(format!(
                "`{at}.role` is missing; expected {ROLES}"
            )));
        }
    };
    if !["system", "developer", "user", "assistant", "tool"].contains(&role) {
        return Err(ApiError::invalid(format!(
            "`{at}.role` must be {ROLES}, got {role:?}"
        )));
    }
    let mut out = map.clone();
    let has_calls = tool_calls(at, role, &mut out)?;
    let content = match map.get("content") {
        None | Some(Value::Null) if has_calls || role == "assistant" => Value::Null,
        None | Some(Value::Null) => {
            return Err(ApiError::invalid(format!(
                "`{at}.content` is missing; expected a string or a list of text parts"
            )));
        }
        Some(Value::String(text)) => json!(text),
        Some(Value::Array(parts)) => json!(join(at, parts)?),
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "`{at}.content` must be a string or a list of text parts, got {}",
                short(other)
            )));
        }
    };
    out.insert("content".into(), content);
    for name in ["reasoning_content", "name", "tool_call_id"] {
        if let Some(value) = map.get(name)
            && !(value.is_string() || value.is_null())
        {
            return Err(ApiError::invalid(format!(
                "`{at}.{name}` must be a string, got {}",
                short(value)
            )));
        }
    }
    Ok(Value::Object(out))
}

fn join(at: &str, parts: &[Value]) -> Result<String, ApiError> {
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        match part.get("type").and_then(Value::as_str) {
            Some("text" | "input_text" | "output_text") => {
                let text = part.get("text").and_then(Value::as_str).ok_or_else(|| {
                    ApiError::invalid(format!("`{at}.content[{index}].text` must be a string"))
                })?;
                texts.push(text);
            }
            Some(kind @ ("image_url" | "input_audio" | "file" | "video_url")) => {
                return Err(ApiError::invalid(format!(
                    "`{at}.content[{index}]`: parts of type {kind:?} are not supported by this \
                     model; only \"text\" is"
                )));
            }
            _ => {
                return Err(ApiError::invalid(format!(
                    "`{at}.content[{index}]` must be {{\"type\": \"text\", \"text\": \"...\"}}, got {}",
                    short(part)
                )));
            }
        }
    }
    Ok(texts.join("\n"))
}

/// Whether there are calls; each must be a function with a name and arguments.
fn tool_calls(at: &str, role: &str, out: &mut Map<String, Value>) -> Result<bool, ApiError> {
    let calls = match out.get("tool_calls") {
        None => return Ok(false),
        Some(Value::Null) => {
            out.remove("tool_calls");
            return Ok(false);
        }
        Some(Value::Array(calls)) if role == "assistant" => calls,
        Some(_) if role != "assistant" => {
            return Err(ApiError::invalid(format!(
                "`{at}.tool_calls` is only allowed for the role \"assistant\""
            )));
        }
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "`{at}.tool_calls` must be a list, got {}",
                short(other)
            )));
        }
    };
    for (index, call) in calls.iter().enumerate() {
        let function = call.get("function");
        let named = function
            .and_then(|function| function.get("name"))
            .is_some_and(Value::is_string);
        let arguments = function
            .and_then(|function| function.get("arguments"))
            .is_none_or(|arguments| arguments.is_string() || arguments.is_object());
        if !named || !arguments {
            return Err(ApiError::invalid(format!(
                "`{at}.tool_calls[{index}]` must be {{\"id\", \"type\": \"function\", \
                 \"function\": {{\"name\", \"arguments\"}}}}, got {}",
                short(call)
            )));
        }
    }
    let any = !calls.is_empty();
    if !any {
        out.remove("tool_calls");
    }
    Ok(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &Value) -> Result<Vec<Value>, String> {
        let body = json!({ "messages": list });
        let fields = Fields::new(&body, &[&["messages"]]).unwrap();
        messages(fields).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn text_parts_become_one_string() {
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let out = read(&json!([{"role": "user", "content": parts}])).unwrap();
        assert_eq!(out[0]["content"], "a\nb");
        let call =
            json!({"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let out =
            read(&json!([{"role": "assistant", "content": null, "tool_calls": [call]}])).unwrap();
        assert_eq!(out[0]["content"], Value::Null);
        assert_eq!(out[0]["tool_calls"][0]["function"]["name"], "f");
    }

    #[test]
    fn each_fault_is_located() {
        let fault = |list: Value| read(&list).unwrap_err();
        insta::assert_snapshot!(fault(json!([])), @"`messages` must not be empty");
        insta::assert_snapshot!(fault(json!("hi")), @r#"`messages` must be an array, got "hi""#);
        insta::assert_snapshot!(fault(json!([1])), @"`messages[0]` must be an object, got 1");
        insta::assert_snapshot!(fault(json!([{"content": "x"}])), @"`messages[0].role` is missing; expected system, developer, user, assistant or tool");
        insta::assert_snapshot!(fault(json!([{"role": "robot", "content": "x"}])), @r#"`messages[0].role` must be system, developer, user, assistant or tool, got "robot""#);
        insta::assert_snapshot!(fault(json!([{"role": "user"}])), @"`messages[0].content` is missing; expected a string or a list of text parts");
        insta::assert_snapshot!(fault(json!([{"role": "user", "content": 3}])), @"`messages[0].content` must be a string or a list of text parts, got 3");
        insta::assert_snapshot!(
            fault(json!([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])),
            @r#"`messages[0].content[0]`: parts of type "image_url" are not supported by this model; only "text" is"#);
        insta::assert_snapshot!(
            fault(json!([{"role": "assistant", "tool_calls": [{"id": 1}]}])),
            @r#"`messages[0].tool_calls[0]` must be {"id", "type": "function", "function": {"name", "arguments"}}, got {"id":1}"#);
        insta::assert_snapshot!(
            fault(json!([{"role": "user", "content": "x", "tool_calls": []}])),
            @r#"`messages[0].tool_calls` is only allowed for the role "assistant""#);
    }
}
