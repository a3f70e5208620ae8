//! Two archives side by side: which fields differ. Nothing is judged and no figure is computed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::archive::{Archive, ArchiveError};
use crate::derive::{Figures, Published, three_digits};

/// Longest value that is shown, in characters.
const LONGEST: usize = 70;

/// A field that differs; absent on a side that does not have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Where: parts joined by `/`.
    pub field: String,
    /// In the first archive.
    pub first: Option<Value>,
    /// In the second.
    pub second: Option<Value>,
}

/// Fields of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// `format`, `study`, `protocol`, `host`, `arm NAME`, `figures`, `verdict`.
    pub name: String,
    /// Fields that are the same in both.
    pub same: usize,
    /// Those that are not.
    pub differ: Vec<Difference>,
}

/// Everything that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArchiveDiff {
    /// The first archive.
    pub first: String,
    /// The second.
    pub second: String,
    /// In a fixed order; sections without a difference too.
    pub sections: Vec<Section>,
}

/// Compares two archives, field by field.
pub fn diff(first: &Archive, second: &Archive) -> Result<ArchiveDiff, ArchiveError> {
    let (a, b) = (sections(first)?, sections(second)?);
    let mut names: Vec<&String> = a.iter().map(|(name, _)| name).collect();
    let others = b.iter().map(|(name, _)| name);
    let new: Vec<&String> = others.filter(|name| !names.contains(name)).collect();
    names.extend(new);
    let empty = Fields::new();
    let of = |all: &'_ [(String, Fields)], name: &str| -> Fields {
        let found = all.iter().find(|(n, _)| n == name);
        found.map_or_else(|| empty.clone(), |(_, fields)| fields.clone())
    };
    let sections = names
        .into_iter()
        .map(|name| section(name, &of(&a, name), &of(&b, name)));
    Ok(ArchiveDiff {
        first: first.name(),
        second: second.name(),
        sections: sections.collect(),
    })
}

type Fields = BTreeMap<String, Value>;

fn section(name: &str, a: &Fields, b: &Fields) -> Section {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let all = keys.len();
    let differ: Vec<Difference> = keys
        .into_iter()
        .filter(|key| a.get(*key) != b.get(*key))
        .map(|key| Difference {
            field: key.clone(),
            first: a.get(key).cloned(),
            second: b.get(key).cloned(),
        })
        .collect();
    Section {
        name: name.into(),
        same: all - differ.len(),
        differ,
    }
}

/// An archive's fields by section. What says only when and under which number something ran (times,
/// process ids, ports) is left out, but for the study's start.
fn sections(archive: &Archive) -> Result<Vec<(String, Fields)>, ArchiveError> {
    let plan = archive.plan();
    let host = archive.host()?;
    let figures = archive.figures()?;
    let version = figures.as_ref().map(Figures::derive_version);
    let mut sections = vec![
        (
            "format".to_owned(),
            flat(&json!({ "schema": plan.schema, "derive": version })),
        ),
        (
            "when".to_owned(),
            flat(&json!({ "utc": host.utc, "boot_id": host.boot_id })),
        ),
        (
            "study".to_owned(),
            flat(&json!({
                "name": plan.study, "sha256": plan.study_sha256, "seed": plan.seed,
                "coins": plan.coins, "looks": plan.looks, "arms": plan.arms,
                "sessions": plan.sessions.len(),
                "question": figures.as_ref().and_then(Figures::question),
                "primary": figures.as_ref().map(Figures::primary),
            })),
        ),
        (
            "workload".to_owned(),
            plan.warmups
                .iter()
                .map(|(name, hash)| (format!("warm-up {name}"), hash.clone().into()))
                .chain(
                    plan.bodies
                        .iter()
                        .map(|(name, hash)| (name.clone(), hash.clone().into())),
                )
                .collect(),
        ),
        (
            "protocol".to_owned(),
            flat(&json!({ "protocol": plan.protocol, "phases": plan.phases })),
        ),
        (
            "host".to_owned(),
            without(flat(&json!(host)), &["schema", "utc", "boot_id"]),
        ),
    ];
    let own = [
        "schema",
        "arm",
        "port",
        "pid",
        "cwd",
        "launched_ns",
        "ready_ns",
    ];
    for arm in &plan.arms {
        let recorded = plan.sessions.iter().filter(|s| s.arm == *arm);
        let mut launches = recorded.filter_map(|s| archive.launch(s).ok());
        if let Some(launch) = launches.next() {
            let mut fields = without(flat(&json!(launch)), &own);
            for value in fields.values_mut() {
                if *value == launch.port.to_string().as_str() {
                    *value = "{port}".into();
                }
            }
            sections.push((format!("arm {arm}"), fields));
        }
    }
    if let Some(figures) = &figures {
        sections.push(("verdict".to_owned(), flat(&json!(figures.verdict()))));
        let by_id = |f: &Published| (f.id().to_owned(), json!(f.value()));
        sections.push((
            "figures".to_owned(),
            figures.all().iter().map(by_id).collect(),
        ));
    }
    Ok(sections)
}

fn without(mut fields: Fields, leave_out: &[&str]) -> Fields {
    fields.retain(|key, _| !leave_out.contains(&key.as_str()));
    fields
}

/// A JSON value's leaves by path; empty lists and objects and nulls are no leaves.
fn flat(value: &Value) -> Fields {
    fn walk(path: &str, value: &Value, out: &mut Fields) {
        let below = |key: &str| {
            if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}/{key}")
            }
        };
        match value {
            Value::Object(map) => map.iter().for_each(|(key, v)| walk(&below(key), v, out)),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.for_each(|(i, v)| walk(&below(&i.to_string()), v, out));
            }
            Value::Null => {}
            leaf => {
                out.insert(path.to_owned(), leaf.clone());
            }
        }
    }
    let mut out = Fields::new();
    walk("", value, &mut out);
    out
}

impl ArchiveDiff {
    /// As lines for people. Of figures only the ratios between arms are listed, unless `all`.
    pub fn lines(&self, all: bool) -> Lines<'_> {
        Lines { diff: self, all }
    }
}

/// [`ArchiveDiff`] for people.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    diff: &'a ArchiveDiff,
    all: bool,
}

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "first   {}\nsecond  {}",
            self.diff.first, self.diff.second
        )?;
        for section in &self.diff.sections {
            let (same, differ) = (section.same, section.differ.len());
            if differ == 0 {
                writeln!(f, "{}: the same ({same} fields)", section.name)?;
                continue;
            }
            writeln!(
                f,
                "{}: {differ} of {} fields differ",
                section.name,
                same + differ
            )?;
            let listed =
                |d: &&Difference| self.all || section.name != "figures" || is_headline(&d.field);
            for d in section.differ.iter().filter(listed) {
                let (a, b) = (spoken(d.first.as_ref()), spoken(d.second.as_ref()));
                writeln!(f, "    {}: {a} | {b}", d.field)?;
            }
        }
        Ok(())
    }
}

/// The ratio of two arms by a metric, and the ends of its interval.
fn is_headline(id: &str) -> bool {
    let last = id.rsplit('/').next().unwrap_or_default();
    id.starts_with("compare/") && matches!(last, "ratio" | "ratio_low" | "ratio_high")
}

fn spoken(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "none".into(),
        Some(Value::Number(n)) if n.is_f64() => three_digits(n.as_f64().unwrap_or_default()),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_named_by_their_path() {
        let fields = flat(&json!({ "a": { "b": [1, { "c": "x" }], "d": null, "e": [] } }));
        let expected = [("a/b/0", json!(1)), ("a/b/1/c", json!("x"))];
        let expected: Fields = expected.map(|(k, v)| (k.to_owned(), v)).into();
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_section_counts_what_is_the_same_and_names_what_is_not() {
        let a = flat(&json!({ "x": 1, "y": 2.5, "z": "only here" }));
        let b = flat(&json!({ "x": 1, "y": 2.25 }));
        let section = section("host", &a, &b);
        assert_eq!(section.same, 1);
        let diff = ArchiveDiff {
            first: "one".into(),
            second: "two".into(),
            sections: vec![section],
        };
        assert_eq!(
            diff.lines(false).to_string(),
            "first   one\nsecond  two\nhost: 2 of 3 fields differ\n    y: 2.50 | 2.25\n    z: only here | none\n"
        );
    }
}
