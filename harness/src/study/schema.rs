//! The JSON Schema of study files, made of the list of their keys: editors complete and check by it.

use serde_json::{Map, Value, json};

use super::keys::{Key, Kind, Table};
use super::vocabulary::STUDY;

/// The draft that the schema is written in.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of study files, as a document with a final newline.
pub fn study_schema() -> String {
    let mut schema = json!({
        "$schema": DRAFT,
        "$id": "urn:palindrome:study:v1",
        "title": "A study file of palindrome",
    });
    merge(&mut schema, table(&STUDY));
    let mut text = serde_json::to_string_pretty(&schema)
        .unwrap_or_else(|e| unreachable!("a tree of strings and numbers is always JSON: {e}"));
    text.push('\n');
    text
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

fn table(of: &Table) -> Value {
    let mut properties = Map::new();
    for key in of.keys() {
        properties.insert(key.name.to_owned(), property(key));
    }
    let required: Vec<&str> = of.keys().filter(|k| k.required).map(|k| k.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let conditions = conditions(of);
    if !conditions.is_empty() {
        schema["allOf"] = Value::Array(conditions);
    }
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = value(&key.kind);
    schema["description"] = key.about.into();
    if let Some(default) = key.default {
        schema["default"] = serde_json::from_str(default)
            .unwrap_or_else(|e| unreachable!("the default of {} is JSON: {e}", key.name));
    }
    schema
}

fn value(kind: &Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Choice(words) => json!({ "type": "string", "enum": words }),
        Kind::Whole(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Number(low, f64::MAX) => json!({ "type": "number", "minimum": low }),
        Kind::Number(low, high) => json!({ "type": "number", "minimum": low, "maximum": high }),
        Kind::Above0(high) => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": high }),
        Kind::Share => json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
        Kind::List(of, least) => {
            let mut list = json!({ "type": "array", "items": value(of) });
            if *least > 0 {
                list["minItems"] = json!(least);
            }
            list
        }
        Kind::WholeOrList(low, high) => {
            let one = value(&Kind::Whole(*low, *high));
            json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
        }
        Kind::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Kind::Free => json!({ "type": "object" }),
        Kind::Table(of) => table(of),
        Kind::TableOrTables(of) => {
            let one = table(of);
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        }
        Kind::Tables(of, least) => {
            json!({ "type": "array", "items": table(of), "minItems": least })
        }
    }
}

/// For each value of `kind`: the keys that may not stand beside it, and those that must, where no
/// other table gives them.
fn conditions(of: &Table) -> Vec<Value> {
    let Some(Key {
        kind: Kind::Choice(kinds),
        ..
    }) = of.key("kind")
    else {
        return Vec::new();
    };
    // What [base] gives and an arm's kind does not take is for the other arms.
    if of.title == "[base]" {
        return Vec::new();
    }
    let condition = |kind: &&str| {
        let refused = of
            .keys()
            .filter(|k| !k.only.is_empty() && !k.only.contains(kind));
        let refused: Map<String, Value> =
            refused.map(|k| (k.name.to_owned(), false.into())).collect();
        let needed: Vec<&str> = of
            .keys()
            .filter(|k| k.needed.contains(kind))
            .map(|k| k.name)
            .collect();
        let mut then = Map::new();
        if !refused.is_empty() {
            then.insert("properties".into(), refused.into());
        }
        if !needed.is_empty() {
            then.insert("required".into(), json!(needed));
        }
        (!then.is_empty()).then(|| {
            json!({ "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] }, "then": then })
        })
    };
    kinds.iter().filter_map(condition).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::de::DeserializeOwned;

    use super::super::expect::Expect;
    use super::super::file::{
        ArmFile, ArmSettings, ExpectCached, Guards, Identity, ServerLimits, StudyFile, WorkloadFile,
    };
    use super::super::looks::LooksFile;
    use super::super::protocol::Limits;
    use super::super::protocol_file::{ProtocolFile, ProtocolKind};
    use super::super::rule::{Direction, RuleFile};
    use super::super::switch::SwitchFile;
    use super::super::vocabulary::TABLES;
    use super::*;
    use crate::derive::Metric;
    use crate::server::ServerKind;
    use crate::stats::Spending;

    /// What serde knows, out of its message about a name that it does not know.
    fn known(message: &str) -> BTreeSet<String> {
        assert!(message.contains("unknown"), "{message}");
        let quoted = message.split('`').skip(3).step_by(2);
        quoted.map(str::to_owned).collect()
    }

    fn fields<T: DeserializeOwned>() -> BTreeSet<String> {
        let error = toml::from_str::<T>("no-such-key = 1").err();
        known(error.expect("strict structs refuse it").message())
    }

    fn words<T: DeserializeOwned>() -> BTreeSet<String> {
        let error = serde_json::from_str::<T>("\"no-such-word\"").err();
        known(&error.expect("no variant has that name").to_string())
    }

    #[test]
    fn the_keys_are_those_that_are_read() {
        let read = [
            fields::<StudyFile>(),
            fields::<RuleFile>(),
            fields::<ArmSettings>(),
            fields::<ArmFile>(),
            fields::<Expect>(),
            fields::<SwitchFile>(),
            fields::<WorkloadFile>(),
            fields::<ProtocolFile>(),
            fields::<LooksFile>(),
            fields::<Limits>(),
            fields::<Guards>(),
            fields::<ServerLimits>(),
        ];
        for (table, read) in TABLES.into_iter().zip(read) {
            let listed: BTreeSet<String> = table.keys().map(|key| key.name.to_owned()).collect();
            assert_eq!(
                listed, read,
                "vocabulary.rs and the struct of {}",
                table.title
            );
        }
    }

    #[test]
    fn the_words_are_those_that_are_read() {
        let all = [
            ("the study", "primary", words::<Metric>()),
            ("the study", "identity", words::<Identity>()),
            ("[gate]", "metric", words::<Metric>()),
            ("[gate]", "direction", words::<Direction>()),
            ("[base]", "kind", words::<ServerKind>()),
            ("[workload]", "expect_cached", words::<ExpectCached>()),
            ("[protocol]", "kind", words::<ProtocolKind>()),
            ("[looks]", "spending", words::<Spending>()),
        ];
        for (title, name, read) in all {
            let table = TABLES.into_iter().find(|t| t.title == title);
            let kind = table.and_then(|t| t.key(name)).map(|k| k.kind);
            let Some(Kind::Choice(listed)) = kind else {
                panic!("{title} {name} is no choice of words");
            };
            let listed: BTreeSet<String> = listed.iter().map(|w| (*w).to_owned()).collect();
            assert_eq!(listed, read, "{title} {name}");
        }
    }

    #[test]
    fn every_key_is_documented() {
        let docs = concat!(
            include_str!("../../../docs/studies.md"),
            include_str!("../../../docs/statistics.md"),
            include_str!("../../../docs/gate.md")
        );
        for table in TABLES {
            for key in table.keys() {
                let named = docs.contains(&format!("`{}`", key.name))
                    || docs.contains(&format!("[{}]", key.name))
                    || docs.contains(&format!("{} = ", key.name));
                assert!(
                    named,
                    "docs/ does not name `{}` of {}",
                    key.name, table.title
                );
            }
        }
    }
}
