//! Fields of llama-server and OpenAI that this server has no use for. They are accepted where
//! they ask for nothing, because a body that is replayed to both servers must spell out every
//! sampler for the other one; anything else is refused by name.

use serde_json::Value;

use super::fields::{Fields, short};
use crate::server::ApiError;

/// When a field asks for nothing.
enum Neutral {
    /// Always: it is a label, or tunes something whose own switch is checked.
    Any,
    /// This number.
    Number(f64),
    /// Zero or less.
    Off,
    /// This truth value.
    Bool(bool),
    /// `""`, `[]`, `{}`.
    Empty,
    /// One of these strings.
    OneOf(&'static [&'static str]),
}

use Neutral::{Any, Bool, Empty, Number, Off, OneOf};

/// The table, by name.
const TABLE: &[(&str, Neutral)] = &[
    // OpenAI
    ("model", Any),
    ("user", Any),
    ("metadata", Any),
    ("safety_identifier", Any),
    ("prompt_cache_key", Any),
    ("prompt_cache_retention", Any),
    ("store", Bool(false)),
    ("service_tier", OneOf(&["auto", "default"])),
    ("verbosity", OneOf(&["medium"])),
    ("n", Number(1.0)),
    ("best_of", Number(1.0)),
    ("echo", Bool(false)),
    ("suffix", Empty),
    ("audio", Empty),
    ("prediction", Empty),
    ("functions", Empty),
    ("function_call", OneOf(&["none", "auto"])),
    ("web_search_options", Empty),
    // llama-server: samplers
    ("dynatemp_range", Number(0.0)),
    ("dynatemp_exponent", Any),
    ("typical_p", Number(1.0)),
    ("top_n_sigma", Off),
    ("xtc_probability", Number(0.0)),
    ("xtc_threshold", Any),
    ("repeat_penalty", Number(1.0)),
    ("repeat_last_n", Any),
    ("penalize_nl", Bool(false)),
    ("dry_multiplier", Number(0.0)),
    ("dry_base", Any),
    ("dry_allowed_length", Any),
    ("dry_penalty_last_n", Any),
    ("dry_sequence_breakers", Any),
    ("mirostat", Number(0.0)),
    ("mirostat_tau", Any),
    ("mirostat_eta", Any),
    ("adaptive_target", Off),
    ("adaptive_decay", Any),
    ("min_keep", Off),
    ("grammar", Empty),
    ("grammar_lazy", Bool(false)),
    ("grammar_triggers", Empty),
    ("json_schema", Empty),
    ("preserved_tokens", Empty),
    ("backend_sampling", Bool(false)),
    // llama-server: the rest
    ("id_slot", Off),
    ("n_keep", Any),
    ("n_discard", Number(0.0)),
    ("n_indent", Number(0.0)),
    ("n_cmpl", Number(1.0)),
    ("n_cache_reuse", Number(0.0)),
    ("t_max_prompt_ms", Off),
    ("t_max_predict_ms", Off),
    ("return_progress", Bool(false)),
    ("post_sampling_probs", Bool(false)),
    ("verbose", Bool(false)),
    ("response_fields", Empty),
    ("lora", Empty),
    ("image_data", Empty),
    ("reasoning_format", OneOf(&["auto", "deepseek"])),
    ("reasoning_in_content", Bool(false)),
    ("thinking_forced_open", Bool(false)),
    ("parse_tool_calls", Bool(true)),
];

/// The names in the table.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|(name, _)| *name).collect()
}

/// Refuses the first field that asks for something.
pub fn check(fields: Fields<'_>) -> Result<(), ApiError> {
    for (name, neutral) in TABLE {
        let Some(value) = fields.get(name) else {
            continue;
        };
        let (asks_nothing, accepted) = match neutral {
            Any => (true, String::new()),
            Number(number) => (value.as_f64() == Some(*number), number.to_string()),
            Off => (
                value.as_f64().is_some_and(|number| number <= 0.0),
                "a value of at most 0".to_owned(),
            ),
            Bool(truth) => (value.as_bool() == Some(*truth), truth.to_string()),
            Empty => (is_empty(value), "an empty value".to_owned()),
            OneOf(words) => (
                value.as_str().is_some_and(|word| words.contains(&word)),
                format!("\"{}\"", words.join("\" or \"")),
            ),
        };
        if !asks_nothing {
            return Err(ApiError::invalid(format!(
                "`{name}` is not supported yet: only {accepted} is accepted, got {}",
                short(value)
            )));
        }
    }
    Ok(())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(body: &Value) -> Option<String> {
        let names = names();
        let fields = Fields::new(body, &[&names]).unwrap();
        check(fields).err().map(|error| error.message().to_owned())
    }

    #[test]
    fn every_sampler_switched_off_is_accepted() {
        let off = json!({
            "typical_p": 1.0, "repeat_penalty": 1, "repeat_last_n": 64, "mirostat": 0,
            "mirostat_tau": 5.0, "dry_multiplier": 0.0, "dry_sequence_breakers": ["\n"],
            "xtc_probability": 0, "xtc_threshold": 0.1, "dynatemp_range": 0, "top_n_sigma": -1,
            "min_keep": 0, "id_slot": -1, "grammar": "", "lora": [], "post_sampling_probs": false,
            "user": "someone", "metadata": {"a": 1}, "store": false, "n": 1, "echo": null,
        });
        assert_eq!(refusal(&off), None);
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        insta::assert_snapshot!(refusal(&json!({"mirostat": 2})).unwrap(), @"`mirostat` is not supported yet: only 0 is accepted, got 2");
        insta::assert_snapshot!(refusal(&json!({"n": 2})).unwrap(), @"`n` is not supported yet: only 1 is accepted, got 2");
        insta::assert_snapshot!(refusal(&json!({"store": true})).unwrap(), @"`store` is not supported yet: only false is accepted, got true");
        insta::assert_snapshot!(refusal(&json!({"grammar": "root ::= x"})).unwrap(), @r#"`grammar` is not supported yet: only an empty value is accepted, got "root ::= x""#);
        insta::assert_snapshot!(refusal(&json!({"service_tier": "flex"})).unwrap(), @r#"`service_tier` is not supported yet: only "auto" or "default" is accepted, got "flex""#);
        assert!(refusal(&json!({"json_schema": {"type": "object"}})).is_some());
    }
}
