//! Findings in short, plain words.

use std::collections::BTreeSet;

use serde_json::Value;

/// Longest that one side of a difference may be, in characters.
const LONGEST: usize = 60;
/// The same for a sha256, of which a few characters tell.
const LONGEST_HASH: usize = 16;

/// `found X, expected Y`: values as JSON writes them, long ones from a little before they part.
pub(super) fn differ(found: impl Into<Value>, expected: impl Into<Value>) -> String {
    let (found, expected) = (spoken(&found.into()), spoken(&expected.into()));
    let limit = if is_hash(&found) && is_hash(&expected) {
        LONGEST_HASH
    } else {
        LONGEST
    };
    let long = |text: &str| text.chars().count() > limit;
    let skipped = if long(&found) || long(&expected) {
        let pairs = found.chars().zip(expected.chars());
        let same = pairs.take_while(|(a, b)| a == b).count();
        same.saturating_sub(limit / 4)
    } else {
        0
    };
    format!(
        "found {}, expected {}",
        part(&found, skipped, limit),
        part(&expected, skipped, limit)
    )
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn spoken(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::String(text) if text.is_empty() => "an empty text".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text without its first `skipped` characters and what lies beyond `limit`.
fn part(text: &str, skipped: usize, limit: usize) -> String {
    let shown: String = text.chars().skip(skipped).take(limit).collect();
    let before = if skipped > 0 { "…" } else { "" };
    let after = if text.chars().count() > skipped + limit {
        "…"
    } else {
        ""
    };
    format!("{before}{shown}{after}")
}

/// Fields that differ in two values of one type: name, of the first, of the second, as JSON.
pub(super) fn differences(
    a: &impl serde::Serialize,
    b: &impl serde::Serialize,
) -> Vec<(String, Value, Value)> {
    let object = |v: Result<Value, serde_json::Error>| match v {
        Ok(Value::Object(map)) => map,
        // Only structs of plain fields come here: each serialises to an object.
        _ => serde_json::Map::new(),
    };
    let (a, b) = (
        object(serde_json::to_value(a)),
        object(serde_json::to_value(b)),
    );
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter()
        .filter(|k| a.get(*k) != b.get(*k))
        .map(|k| {
            let at = |m: &serde_json::Map<String, Value>| m.get(k).cloned().unwrap_or(Value::Null);
            (k.clone(), at(&a), at(&b))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_are_whole() {
        assert_eq!(differ(1, Value::Null), "found 1, expected nothing");
        assert_eq!(differ("", "stop"), "found an empty text, expected stop");
        assert_eq!(differ(true, false), "found true, expected false");
    }

    #[test]
    fn long_values_are_shown_where_they_part() {
        let (a, b) = ("a".repeat(100) + "X" + &"b".repeat(100), "a".repeat(100));
        assert_eq!(
            differ(a, b),
            format!(
                "found …{}X{}…, expected …{}",
                "a".repeat(15),
                "b".repeat(44),
                "a".repeat(15)
            )
        );
        let (a, b) = ("0".repeat(64), "0".repeat(40) + &"f".repeat(24));
        let zeros = "0".repeat(16);
        assert_eq!(
            differ(a, b),
            format!("found …{zeros}…, expected …0000{}…", "f".repeat(12))
        );
        // Characters, not bytes.
        let long = differ("é".repeat(70), "ü");
        assert_eq!(long, format!("found {}…, expected ü", "é".repeat(60)));
    }
}
