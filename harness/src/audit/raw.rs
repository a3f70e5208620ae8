//! Raw streams interpreted again and compared with the records.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::Audit;
use crate::archive::{Archive, Facts, SessionFacts};
use crate::study::{ExpectCached, StudyFile};

/// Recomputes every request's record from its raw stream. Returns the facts with the recomputed
/// records, for figures to be derived from; absent when the facts cannot be read.
pub(super) fn check(archive: &Archive, audit: &mut Audit) -> Option<Facts> {
    let mut facts = match archive.facts() {
        Ok(facts) => facts,
        Err(error) => {
            audit.fail_with(".", &error);
            return None;
        }
    };
    let text = String::from_utf8_lossy(&facts.study_toml);
    // A study file that does not parse declares nothing; the plan's check reports it.
    let expected = StudyFile::parse(Path::new("study.toml"), &text)
        .map(|file| file.workload.expect_cached)
        .ok();
    for session in &mut facts.sessions {
        followed(archive, session, audit);
        for i in 0..session.requests.len() {
            recompute(archive, session, i, audit);
        }
        prompts(session, audit);
        if let Some(expected) = expected {
            cached(session, expected, audit);
        }
    }
    Some(facts)
}

/// Requests against the plan's bodies and against the files in `streams/`.
fn followed(archive: &Archive, session: &SessionFacts, audit: &mut Audit) {
    let file = format!("sessions/{}/requests.jsonl", session.name());
    let bodies = &archive.plan().bodies;
    let planned: Vec<_> = archive
        .plan()
        .warmups
        .iter()
        .map(|b| (false, b))
        .chain(bodies.iter().map(|b| (true, b)))
        .collect();
    if session.end.error.is_none() && session.requests.len() != planned.len() {
        audit.fail(
            &file,
            "",
            format!(
                "{} requests, the plan has {}",
                session.requests.len(),
                planned.len()
            ),
        );
    }
    for (r, (scored, (name, sha256))) in session.requests.iter().zip(&planned) {
        for (field, found, expected) in [
            ("body", &r.body, name),
            ("body_sha256", &r.body_sha256, sha256),
            ("scored", &r.scored.to_string(), &scored.to_string()),
        ] {
            if found != expected {
                audit.fail(
                    &file,
                    format!("{}/{field}", r.index),
                    format!("is {found:?}, the plan says {expected:?}"),
                );
            }
        }
    }
    for (i, r) in session.requests.iter().enumerate() {
        if r.index as usize != i {
            audit.fail(
                &file,
                format!("line {}", i + 1),
                format!("index is {}", r.index),
            );
        }
    }
    let expected: BTreeSet<String> = session
        .requests
        .iter()
        .flat_map(|r| {
            [
                format!("{}.sse.zst", r.stream),
                format!("{}.arrivals.json", r.stream),
            ]
        })
        .collect();
    if expected.len() != session.requests.len() * 2 {
        audit.fail(&file, "stream", "two requests name the same stream");
    }
    let folder = format!("sessions/{}/streams", session.name());
    match crate::archive::list_files(&archive.path().join(&folder)) {
        Ok(found) => {
            for extra in found.iter().filter(|f| !expected.contains(*f)) {
                audit.fail(format!("{folder}/{extra}"), "", "belongs to no request");
            }
        }
        Err(error) => audit.fail_with(&folder, &error),
    }
}

fn recompute(archive: &Archive, session: &mut SessionFacts, i: usize, audit: &mut Audit) {
    let name = session.name();
    let stored = session.requests[i].clone();
    let stem = format!("sessions/{name}/streams/{}", stored.stream);
    let raw = match archive.raw(&session.planned, &stored.stream) {
        Ok(raw) => raw,
        Err(error) => return audit.fail_with(&stem, &error),
    };
    audit.streams += 1;
    if raw.arrivals.last().map_or(0, |a| a.end) != raw.body.len() as u64 {
        audit.fail(
            format!("{stem}.arrivals.json"),
            "arrivals",
            "do not add up to the length of the stream",
        );
    }
    let mut at = raw.sent_ns;
    let mut end = 0;
    for arrival in &raw.arrivals {
        if arrival.ns < at || arrival.end <= end {
            audit.fail(
                format!("{stem}.arrivals.json"),
                "arrivals",
                "times or offsets run backwards",
            );
            break;
        }
        (at, end) = (arrival.ns, arrival.end);
    }
    if raw.done_ns < at {
        audit.fail(
            format!("{stem}.arrivals.json"),
            "done_ns",
            "lies before the last arrival",
        );
    }
    let again = stored.recompute(&raw, session.launch.kind);
    audit.requests += 1;
    audit.token_hashes += [&again.prompt_hash, &again.generated_hash, &again.text_hash]
        .iter()
        .filter(|h| h.is_some())
        .count();
    if again != stored {
        let file = format!("sessions/{name}/requests.jsonl");
        for (field, found, expected) in differences(&stored, &again) {
            audit.fail(
                &file,
                format!("{i}/{field}"),
                format!("is {found}, the raw stream says {expected}"),
            );
        }
    }
    session.requests[i] = again;
}

/// Cached prompt tokens against what the study declares; a failed session says so itself.
fn cached(session: &SessionFacts, expected: ExpectCached, audit: &mut Audit) {
    if session.end.error.is_some() {
        return;
    }
    for r in &session.requests {
        if let Some(what) = expected.broken_by(r.index, r.cached_tokens) {
            audit.fail(
                format!("sessions/{}/requests.jsonl", session.name()),
                format!("{}/cached_tokens", r.index),
                what,
            );
        }
    }
}

/// Prompt ids read again from the stored answers of the server's tokeniser.
fn prompts(session: &mut SessionFacts, audit: &mut Audit) {
    let file = format!("sessions/{}/prompts.jsonl", session.name());
    let mut seen = BTreeSet::new();
    for stored in &mut session.prompts {
        let index = stored.index;
        if !seen.insert(index) {
            audit.fail(&file, index.to_string(), "is there twice");
        }
        match session.requests.iter().find(|r| r.index == index) {
            Some(r) if r.body == stored.body => {}
            _ => audit.fail(
                &file,
                format!("{index}/body"),
                format!("is {:?}, which request {index} did not send", stored.body),
            ),
        }
        let again = stored.recompute();
        audit.token_hashes += usize::from(again.prompt_hash.is_some());
        for (field, found, expected) in differences(&*stored, &again) {
            audit.fail(
                &file,
                format!("{index}/{field}"),
                format!("is {found}, the server's answer says {expected}"),
            );
        }
        *stored = again;
    }
}

/// Fields that differ, as JSON.
fn differences(
    a: &impl serde::Serialize,
    b: &impl serde::Serialize,
) -> Vec<(String, Value, Value)> {
    let object = |v: Result<Value, serde_json::Error>| match v {
        Ok(Value::Object(map)) => map,
        // A record is a struct of plain fields: it always serialises to an object.
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
