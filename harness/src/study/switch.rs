//! What tells one arm from the other inside a session of a paired study.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};

/// `switch` of an `[[arm]]`, as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchFile {
    /// Fields that are added to each of the arm's bodies.
    #[serde(default)]
    pub fields: Option<toml::Table>,
    /// Path that is posted to before each of the arm's requests.
    #[serde(default)]
    pub post: Option<String>,
    /// What is posted, as a JSON object.
    #[serde(default)]
    pub json: Option<toml::Table>,
}

/// How a server is told which arm's settings to use.
#[derive(Clone, Debug, PartialEq)]
pub enum Switch {
    /// By fields of the request itself.
    Fields(Map<String, Value>),
    /// By a call before it.
    Call {
        /// Where it is posted.
        path: String,
        /// The JSON text that is posted.
        body: String,
    },
}

impl SwitchFile {
    /// The switch, or what is wrong with it.
    pub fn resolve(&self) -> Result<Switch, String> {
        match (&self.fields, &self.post, &self.json) {
            (Some(fields), None, None) => Ok(Switch::Fields(object(fields)?)),
            (None, Some(path), json) if path.starts_with('/') => {
                let body = json.as_ref().map_or_else(|| Ok(Map::new()), object)?;
                Ok(Switch::Call {
                    path: path.clone(),
                    body: Value::Object(body).to_string(),
                })
            }
            (None, Some(path), _) => Err(format!(
                "switch.post = {path:?} must start with `/`, as in \"/settings\""
            )),
            _ => Err(
                "a switch is `{ fields = { ... } }`, added to each body, or `{ post = \"/path\", json = { ... } }`, a \
                 call before each request"
                    .to_owned(),
            ),
        }
    }
}

fn object(table: &toml::Table) -> Result<Map<String, Value>, String> {
    match serde_json::to_value(table) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(e) => Err(format!("it cannot be written as JSON: {e}")),
    }
}

/// A body with fields added before its last brace; every byte that it had is kept.
pub fn with_fields(body: &[u8], fields: &Map<String, Value>) -> Result<Vec<u8>, String> {
    let text = std::str::from_utf8(body).map_err(|e| format!("it is not UTF-8 text: {e}"))?;
    let Ok(Value::Object(known)) = serde_json::from_str(text) else {
        return Err("it is no JSON object, so no field can be added".to_owned());
    };
    if let Some(twice) = fields.keys().find(|key| known.contains_key(*key)) {
        return Err(format!("it has a field {twice:?} already"));
    }
    let (head, tail) = text.rsplit_once('}').unwrap_or((text, ""));
    let mut out = head.to_owned();
    for (nth, (key, value)) in fields.iter().enumerate() {
        if nth > 0 || !known.is_empty() {
            out.push_str(", ");
        }
        // Writing to a String cannot fail.
        let _ = write!(out, "{}: {value}", Value::from(key.as_str()));
    }
    out.push('}');
    out.push_str(tail);
    Ok(out.into_bytes())
}

/// An arm's own name of a body: `one.json` is `one.fast.json` for the arm `fast`.
pub fn arms_body(name: &str, arm: &str) -> String {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    format!("{stem}.{arm}.json")
}

/// The body and the arm of such a name.
pub fn body_and_arm(name: &str) -> Option<(String, &str)> {
    let (stem, arm) = name.strip_suffix(".json")?.rsplit_once('.')?;
    Some((format!("{stem}.json"), arm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_added_and_nothing_else_changes() {
        let fields: SwitchFile = toml::from_str("fields = { a = 1, b = [\"x\"] }").unwrap();
        let Switch::Fields(fields) = fields.resolve().unwrap() else {
            panic!("fields");
        };
        let with = |body: &str| {
            with_fields(body.as_bytes(), &fields).map(|b| String::from_utf8(b).unwrap())
        };
        assert_eq!(with("{}").unwrap(), "{\"a\": 1, \"b\": [\"x\"]}");
        let body = "{\"x\":  1.50,\n \"y\": {}}\n";
        let expected = "{\"x\":  1.50,\n \"y\": {}, \"a\": 1, \"b\": [\"x\"]}\n";
        assert_eq!(with(body).unwrap(), expected);
        assert!(
            with("{\"b\": 0}")
                .unwrap_err()
                .contains("a field \"b\" already")
        );
        assert!(with("[]").unwrap_err().contains("no JSON object"));
    }

    #[test]
    fn a_body_tells_its_arm() {
        assert_eq!(arms_body("x-one.json", "fast"), "x-one.fast.json");
        let found = body_and_arm("x-one.fast.json").unwrap();
        assert_eq!((found.0.as_str(), found.1), ("x-one.json", "fast"));
        assert_eq!(body_and_arm("one.json"), None);
    }

    #[test]
    fn a_switch_is_of_one_form() {
        let of = |text: &str| toml::from_str::<SwitchFile>(text).unwrap().resolve();
        let call = of("post = \"/s\"\njson = { on = true }").unwrap();
        let expected = Switch::Call {
            path: "/s".to_owned(),
            body: "{\"on\":true}".to_owned(),
        };
        assert_eq!(call, expected);
        assert!(of("").unwrap_err().contains("a switch is"));
        assert!(
            of("post = \"s\"")
                .unwrap_err()
                .contains("must start with `/`")
        );
        assert!(
            of("fields = {}\njson = {}")
                .unwrap_err()
                .contains("a switch is")
        );
    }
}
