//! OpenAI-shaped messages as templates expect them.

use minijinja::value::Value;
use serde_json::Value as Json;

/// A JSON value for the template engine, keys in their order.
pub fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(n), _) => Value::from(n),
            (None, Some(n)) => Value::from(n),
            (None, None) => n.as_f64().map_or_else(|| Value::from(()), Value::from),
        },
        Json::String(s) => Value::from(s.as_str()),
        Json::Array(items) => items.iter().map(to_value).collect::<Vec<_>>().into(),
        Json::Object(map) => Value::from_pairs(map.iter().map(|(k, v)| (k.as_str(), to_value(v)))),
    }
}

/// Brings a message into the shape that published templates are written for:
/// * content in parts becomes one text, a line a part, when all parts are text;
/// * arguments of tool calls become objects (the API has them as JSON text);
/// * reasoning of a turn that called tools and said nothing else is also `thinking`, where
///   gpt-oss templates look for it.
pub fn normalise(message: &Json) -> Json {
    let mut message = message.clone();
    let Some(fields) = message.as_object_mut() else {
        return message;
    };
    if let Some(text) = fields.get("content").and_then(text_of_parts) {
        fields.insert("content".to_owned(), Json::String(text));
    }
    let calls = fields.get_mut("tool_calls").and_then(Json::as_array_mut);
    let has_calls = calls.as_ref().is_some_and(|calls| !calls.is_empty());
    for call in calls.into_iter().flatten() {
        let Some(arguments) = call.pointer_mut("/function/arguments") else {
            continue;
        };
        let parsed = arguments
            .as_str()
            .and_then(|text| serde_json::from_str::<Json>(text).ok());
        if let Some(object @ Json::Object(_)) = parsed {
            *arguments = object;
        }
    }
    let silent = match fields.get("content") {
        None | Some(Json::Null) => true,
        Some(content) => content.as_str() == Some(""),
    };
    if has_calls
        && silent
        && !fields.contains_key("thinking")
        && let Some(reasoning @ Json::String(_)) = fields
            .get("reasoning_content")
            .or_else(|| fields.get("reasoning"))
            .cloned()
    {
        fields.insert("thinking".to_owned(), reasoning);
    }
    message
}

/// The joined text of content parts; `None` unless all are text.
fn text_of_parts(content: &Json) -> Option<String> {
    let parts: Option<Vec<&str>> = content
        .as_array()?
        .iter()
        .map(|part| {
            (part.get("type")?.as_str()? == "text")
                .then(|| part.get("text")?.as_str())
                .flatten()
        })
        .collect();
    Some(parts?.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_take_the_shape_templates_expect() {
        let call = |arguments: Json| json!([{"function": {"name": "f", "arguments": arguments}}]);
        let message = json!({
            "role": "assistant",
            "content": null,
            "reasoning_content": "why",
            "tool_calls": call(json!("{\"b\": 1, \"a\": [2]}")),
        });
        let wanted = json!({
            "role": "assistant",
            "content": null,
            "reasoning_content": "why",
            "tool_calls": call(json!({"b": 1, "a": [2]})),
            "thinking": "why",
        });
        assert_eq!(normalise(&message), wanted);
        // Arguments that are no JSON object stay as the model wrote them.
        let broken = json!({"role": "assistant", "tool_calls": call(json!("{\"b\": "))});
        assert_eq!(normalise(&broken), broken);
    }

    #[test]
    fn text_parts_become_text_and_other_parts_stay() {
        let text = json!({"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}
        ]});
        assert_eq!(normalise(&text), json!({"role": "user", "content": "a\nb"}));
        let image = json!({"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}
        ]});
        assert_eq!(normalise(&image), image);
    }
}
