//! Typed access to a JSON body, with errors that name the field and what would be right.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::server::ApiError;

/// A JSON object whose names have all been checked. `null` counts as absent, as in OpenAI's
/// clients.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Refuses names that are in none of `known`, suggesting the nearest that is.
    pub fn new(body: &'a Value, known: &[&[&str]]) -> Result<Self, ApiError> {
        let map = body
            .as_object()
            .ok_or_else(|| ApiError::invalid("the body must be a JSON object"))?;
        for name in map.keys() {
            if !known.iter().any(|names| names.contains(&name.as_str())) {
                return Err(unknown(name, known));
            }
        }
        Ok(Self { map })
    }
    /// The value, unless absent or null.
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }
    /// A boolean.
    pub fn bool(self, name: &str) -> Result<Option<bool>, ApiError> {
        self.get(name)
            .map(|value| {
                value
                    .as_bool()
                    .ok_or_else(|| wrong(name, "true or false", value))
            })
            .transpose()
    }
    /// A string.
    pub fn str(self, name: &str) -> Result<Option<&'a str>, ApiError> {
        self.get(name)
            .map(|value| value.as_str().ok_or_else(|| wrong(name, "a string", value)))
            .transpose()
    }
    /// An integer in a range.
    pub fn int(self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, ApiError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(wrong(
                name,
                &format!("an integer {}", bounds(&range, &i64::MIN, &i64::MAX)),
                value,
            )),
        }
    }
    /// A number in a range.
    pub fn float(self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f32>, ApiError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) if range.contains(&number) => Ok(Some(number as f32)),
            _ => Err(wrong(
                name,
                &format!("a number {}", bounds(&range, &f64::MIN, &f64::MAX)),
                value,
            )),
        }
    }
    /// An array.
    pub fn array(self, name: &str) -> Result<Option<&'a [Value]>, ApiError> {
        self.get(name)
            .map(|value| {
                value
                    .as_array()
                    .map(Vec::as_slice)
                    .ok_or_else(|| wrong(name, "an array", value))
            })
            .transpose()
    }
    /// An object.
    pub fn object(self, name: &str) -> Result<Option<&'a Map<String, Value>>, ApiError> {
        self.get(name)
            .map(|value| {
                value
                    .as_object()
                    .ok_or_else(|| wrong(name, "an object", value))
            })
            .transpose()
    }
}

/// A known field with a bad value.
pub fn wrong(name: &str, expected: &str, got: &Value) -> ApiError {
    ApiError::invalid(format!("`{name}` must be {expected}, got {}", short(got)))
}

/// A value as an error quotes it.
pub fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 40 {
        return text;
    }
    let mut cut: String = text.chars().take(37).collect();
    cut.push_str("...");
    cut
}

fn bounds<T: PartialOrd + std::fmt::Display>(
    range: &RangeInclusive<T>,
    low: &T,
    high: &T,
) -> String {
    let open_below = range.start() <= low;
    let open_above = range.end() >= high;
    match (open_below, open_above) {
        (true, true) => String::new(),
        (false, true) => format!("of at least {}", range.start()),
        (true, false) => format!("of at most {}", range.end()),
        (false, false) => format!("from {} to {}", range.start(), range.end()),
    }
    .trim()
    .to_owned()
}

fn unknown(name: &str, known: &[&[&str]]) -> ApiError {
    let nearest = known
        .iter()
        .flat_map(|names| names.iter())
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), *candidate))
        .min();
    let name = name.chars().take(60).collect::<String>();
    match nearest {
        Some((distance, candidate)) if distance <= 1 + candidate.len() / 3 => ApiError::invalid(
            format!("unknown field `{name}`; did you mean `{candidate}`?"),
        ),
        _ => ApiError::invalid(format!("unknown field `{name}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_say_what_would_be_right() {
        let body = json!({"a": "x", "b": 3, "c": null, "long": "y".repeat(100)});
        let fields = Fields::new(&body, &[&["a", "b"], &["c", "long"]]).unwrap();
        let text = |error: ApiError| error.message().to_owned();
        assert_eq!(fields.bool("c").unwrap(), None);
        insta::assert_snapshot!(text(fields.bool("a").unwrap_err()), @r#"`a` must be true or false, got "x""#);
        insta::assert_snapshot!(text(fields.int("b", 5..=9).unwrap_err()), @"`b` must be an integer from 5 to 9, got 3");
        insta::assert_snapshot!(text(fields.int("a", 0..=i64::MAX).unwrap_err()), @r#"`a` must be an integer of at least 0, got "x""#);
        insta::assert_snapshot!(text(fields.float("a", 0.0..=2.5).unwrap_err()), @r#"`a` must be a number from 0 to 2.5, got "x""#);
        insta::assert_snapshot!(text(fields.array("long").unwrap_err()), @r#"`long` must be an array, got "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy..."#);
    }

    #[test]
    fn unknown_names_get_the_nearest_known() {
        let known: &[&[&str]] = &[&["temperature", "top_p"], &["stop"]];
        let text = |body| {
            Fields::new(&body, known)
                .err()
                .map(|error| error.message().to_owned())
        };
        assert_eq!(
            text(json!({"temprature": 1})).unwrap(),
            "unknown field `temprature`; did you mean `temperature`?"
        );
        assert_eq!(
            text(json!({"zzzzzzzz": 1})).unwrap(),
            "unknown field `zzzzzzzz`"
        );
        assert_eq!(text(json!({"stop": 1})), None);
    }
}
