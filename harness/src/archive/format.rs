//! The format's version, its history, and the check of versions in files.

use serde::Serialize;
use serde_json::{Map, Value};

use super::ArchiveError;

/// `major.minor` written into every JSON document and line. A reader refuses a newer major and
/// reads every older one; a newer minor only adds fields.
pub const SCHEMA: &str = "1.2";

/// Major part of [`SCHEMA`].
const MAJOR: u32 = 1;

/// What changed in each version, newest first. An archive states its version in `plan.json`;
/// figures and verdict are derived, and audited, as that version says.
pub const CHANGELOG: &[(&str, &str)] = &[
    (
        "1.2",
        "`derive` in the figures: the version of `derive` that published them, by which they are audited; readback.json, more telemetry, gaps between tokens in every protocol; `settings` and `noise` in the figures, absent where servers were not read back; `arrivals` among the protocols of the plan; `client_cpu_ns` of a request and its figures; paired protocols and their switches.jsonl; SHA256SUMS; manifest.json.minisig where the archive was signed",
    ),
    (
        "1.1",
        "figures: p and Holm-adjusted p, deviation of pairs, sessions that would settle the margin, bounds of percentiles; `looks` in the plan, `look` in the figures, absent where none is planned; protocols: `protocol` and `phases` in the plan, `phase` in a request's line, `protocol` and `alone` in the figures, absent where requests go one at a time",
    ),
    (
        "1.0",
        "first format: plan, host, workload, sessions with raw streams, chained events, figures, manifest, SEAL",
    ),
];

/// Minor part of a `major.minor`; 0, the oldest, for what does not read as one.
pub fn minor(schema: &str) -> u32 {
    let (_, minor) = schema.split_once('.').unwrap_or_default();
    minor.parse().unwrap_or(0)
}

/// `predicateType` of the manifest.
pub const PREDICATE_TYPE: &str = "urn:palindrome:study:v1";

/// `_type` of the manifest: an in-toto attestation Statement, version 1.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// Puts `schema` first in an object, keeping the value's own if it has one; anything that is no
/// object becomes `{"schema", "value"}`.
pub(super) fn with_schema(value: Value) -> Value {
    let mut map = Map::new();
    let own = value.get("schema").cloned();
    map.insert(
        "schema".into(),
        own.unwrap_or_else(|| Value::String(SCHEMA.into())),
    );
    match value {
        Value::Object(fields) => {
            map.extend(fields.into_iter().filter(|(key, _)| key != "schema"));
        }
        other => {
            map.insert("value".into(), other);
        }
    }
    Value::Object(map)
}

/// A fact as pretty JSON with its schema first and a final newline.
pub(super) fn document(file: &str, fact: &impl Serialize) -> Result<Vec<u8>, ArchiveError> {
    let value = serde_json::to_value(fact)
        .map_err(|e| ArchiveError::malformed(file, None, e.to_string()))?;
    let mut bytes = serde_json::to_vec_pretty(&with_schema(value))
        .map_err(|e| ArchiveError::malformed(file, None, e.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A fact as one line of JSON with its schema first, newline included.
pub(super) fn line(file: &str, fact: &impl Serialize) -> Result<Vec<u8>, ArchiveError> {
    let value = serde_json::to_value(fact)
        .map_err(|e| ArchiveError::malformed(file, None, e.to_string()))?;
    let mut bytes = serde_json::to_vec(&with_schema(value))
        .map_err(|e| ArchiveError::malformed(file, None, e.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Refuses a document without a version or of a newer major than this program knows.
pub(super) fn check_schema(file: &str, value: &Value) -> Result<(), ArchiveError> {
    let found = value.get("schema").and_then(Value::as_str).unwrap_or("");
    let parsed = found
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    match parsed {
        Some((major, _)) if major <= MAJOR => Ok(()),
        Some(_) => Err(ArchiveError::NewerSchema {
            file: file.into(),
            found: found.into(),
        }),
        None => Err(ArchiveError::malformed(
            file,
            None,
            format!("`schema` is {found:?}, expected `major.minor` such as {SCHEMA:?}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schema_leads_every_object() {
        let v = with_schema(json!({"a": 1}));
        assert_eq!(v.to_string(), format!(r#"{{"schema":"{SCHEMA}","a":1}}"#));
        let v = with_schema(json!({"a": 1, "schema": "0.1"}));
        assert_eq!(v.to_string(), r#"{"schema":"0.1","a":1}"#);
    }

    #[test]
    fn newer_major_is_refused_by_name_and_newer_minor_is_read() {
        assert!(check_schema("plan.json", &json!({"schema": "1.9"})).is_ok());
        let error = check_schema("plan.json", &json!({"schema": "2.0"})).unwrap_err();
        let said = error.to_string();
        let expected = "plan.json is of archive format 2.0; this program reads up to major version 1 (format 1.";
        assert!(said.starts_with(expected), "{said}");
        assert!(check_schema("plan.json", &json!({})).is_err());
    }

    #[test]
    fn minor_versions_are_numbers() {
        assert_eq!((minor("1.0"), minor("1.12"), minor("x")), (0, 12, 0));
    }

    #[test]
    fn changelog_starts_at_the_current_version() {
        assert_eq!(CHANGELOG[0].0, SCHEMA);
    }
}
