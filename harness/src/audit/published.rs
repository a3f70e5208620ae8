//! Published figures and verdict against those derived again.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Audit;
use super::evidence::Evidence;
use super::words::{differ, differences};
use crate::archive::{Archive, manifest_bytes};
use crate::derive::{DERIVE, Figures, Published, Verdict, derive_as};

const FILE: &str = "figures.json";

/// Derives everything again from recomputed facts and compares to the last bit. What rests on
/// facts that cannot be read is counted, not compared.
pub(super) fn check(archive: &Archive, evidence: &Evidence, audit: &mut Audit) {
    let published = match archive.figures() {
        Ok(Some(published)) => Some(published),
        Ok(None) => {
            audit.fail(FILE, "", "is missing");
            None
        }
        Err(error) => {
            audit.fail_with(archive, FILE, &error);
            None
        }
    };
    let version = published.as_ref().map_or(DERIVE, Figures::derive_version);
    let again = derive_as(&evidence.facts, version);
    if let Some(published) = &published
        && is_known(archive, version, audit)
    {
        audit.figures_newer = again.later;
        figures(published, &again.figures, evidence, audit);
        if evidence.is_whole() {
            words(published, &again.figures, audit);
        }
    }
    let again = again.figures;
    let verdict = published.as_ref().unwrap_or(&again).verdict();
    manifest(archive, verdict, audit);
}

/// Whether figures of a version of `derive` can be derived again: not those of a newer program. The
/// programs since format 1.2 all state the version.
fn is_known(archive: &Archive, version: u32, audit: &mut Audit) -> bool {
    let oldest = if archive.plan().minor() >= 2 { 2 } else { 1 };
    if version > DERIVE {
        let what = format!(
            "found {version}, expected {DERIVE} at most: a newer palindrome can audit these figures"
        );
        audit.fail(FILE, "derive", what);
    } else if version < oldest {
        let what = format!("found {version}, expected {oldest} or more by plan.json's format");
        audit.fail(FILE, "derive", what);
    }
    version <= DERIVE
}

fn figures(published: &Figures, again: &Figures, evidence: &Evidence, audit: &mut Audit) {
    let derived: HashMap<&str, &Published> = again.all().iter().map(|f| (f.id(), f)).collect();
    let mut seen = HashSet::new();
    let mut unfounded = HashSet::new();
    for p in published.all() {
        if !seen.insert(p.id()) {
            audit.fail(FILE, p.id(), "is there twice");
        }
        let rests_on_nothing = |input: &String| match input.split_once('#') {
            Some((file, _)) => evidence.lacks(file),
            None => unfounded.contains(input.as_str()),
        };
        if p.inputs().iter().any(rests_on_nothing) {
            unfounded.insert(p.id());
            audit.figures_not_compared += 1;
            continue;
        }
        audit.figures += 1;
        match derived.get(p.id()) {
            Some(a) => difference(p, a, audit),
            None => audit.fail(FILE, p.id(), "is not a figure that the raw facts give"),
        }
    }
    for a in again.all().iter().filter(|a| !seen.contains(a.id())) {
        audit.fail(FILE, a.id(), "is missing");
    }
    let order = |figures: &Figures| -> Vec<String> {
        figures.all().iter().map(|f| f.id().to_owned()).collect()
    };
    if evidence.is_whole() && seen.len() == derived.len() && order(published) != order(again) {
        audit.fail(FILE, "figures", "do not stand in the order of derivation");
    }
}

fn difference(p: &Published, a: &Published, audit: &mut Audit) {
    if p.same_bits(a) {
        return;
    }
    for (field, found, expected) in differences(p, a) {
        audit.fail(FILE, format!("{} {field}", p.id()), differ(found, expected));
    }
}

/// Question, verdict, comparisons and identities: what is said around the figures.
fn words(published: &Figures, again: &Figures, audit: &mut Audit) {
    let (mut found, mut expected) = (published.clone(), again.clone());
    found.forget_figures();
    expected.forget_figures();
    for (field, found, expected) in differences(&found, &expected) {
        if field == "verdict" {
            verdict(published.verdict(), again.verdict(), audit);
        } else {
            audit.fail(FILE, field, differ(found.to_string(), expected.to_string()));
        }
    }
}

fn verdict(found: &Verdict, expected: &Verdict, audit: &mut Audit) {
    for (field, found, expected) in differences(found, expected) {
        let field = format!("verdict {field}");
        let (Value::Array(found), Value::Array(expected)) = (&found, &expected) else {
            audit.fail(FILE, field, differ(found, expected));
            continue;
        };
        for i in 0..found.len().max(expected.len()) {
            let (found, expected) = (found.get(i).cloned(), expected.get(i).cloned());
            if found != expected {
                audit.fail(FILE, format!("{field} {i}"), differ(found, expected));
            }
        }
    }
}

/// The manifest, computed again from the files and the published verdict, byte for byte.
fn manifest(archive: &Archive, verdict: &Verdict, audit: &mut Audit) {
    match (
        manifest_bytes(archive.path(), verdict),
        archive.read("manifest.json"),
    ) {
        (Ok(expected), Ok(found)) if expected == found => {}
        (Ok(expected), Ok(found)) => {
            let (field, what) = apart(&found, &expected);
            let what = format!("{what} by the files and the verdict");
            audit.fail("manifest.json", field, what);
        }
        (Err(error), _) | (_, Err(error)) => audit.fail_with(archive, "manifest.json", &error),
    }
}

/// Where two JSON documents part: a field's path with both values, or the line of the first byte.
fn apart(found: &[u8], expected: &[u8]) -> (String, String) {
    let read = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    if let (Some(found), Some(expected)) = (read(found), read(expected))
        && let Some((path, found, expected)) = first_apart(String::new(), &found, &expected)
    {
        return (path, differ(found, expected));
    }
    let same = found.iter().zip(expected).take_while(|(a, b)| a == b);
    let line = 1 + same.filter(|(a, _)| **a == b'\n').count();
    (format!("line {line}"), "is not written as expected".into())
}

fn first_apart(path: String, found: &Value, expected: &Value) -> Option<(String, Value, Value)> {
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}/{key}")
        }
    };
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let at = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or(Value::Null)
                };
                first_apart(below(key), &at(a), &at(b))
            })
        }
        (Value::Array(a), Value::Array(b)) => (0..a.len().max(b.len())).find_map(|i| {
            let at = |list: &[Value]| list.get(i).cloned().unwrap_or(Value::Null);
            first_apart(below(&i.to_string()), &at(a), &at(b))
        }),
        _ => (found != expected).then(|| (path, found.clone(), expected.clone())),
    }
}
