//! Raw streams interpreted again and compared with the records.

use std::collections::BTreeSet;

use serde_json::json;

use super::Audit;
use super::evidence::Evidence;
use super::words::{differ, differences};
use crate::archive::{Archive, SessionFacts};
use crate::study::{ExpectCached, Plan};

/// Recomputes every request's record from its raw stream and puts it in the record's place, for
/// figures to be derived from.
pub(super) fn check(archive: &Archive, evidence: &mut Evidence, audit: &mut Audit) {
    let study = evidence.study.as_ref();
    let expected = study.map(|file| file.workload.expect_cached);
    for session in &mut evidence.facts.sessions {
        followed(archive, session, audit);
        for i in 0..session.requests.len() {
            recompute(archive, session, i, audit);
        }
        prompts(session, audit);
        if let Some(expected) = expected {
            cached(archive.plan(), session, expected, audit);
        }
    }
}

/// Requests against the plan's bodies and against the files in `streams/`.
fn followed(archive: &Archive, session: &SessionFacts, audit: &mut Audit) {
    let file = format!("sessions/{}/requests.jsonl", session.name());
    let planned = archive.plan().steps_of(&session.planned);
    if session.end.error.is_none() && session.requests.len() != planned.len() {
        audit.fail(
            &file,
            "",
            format!(
                "{} requests by plan.json",
                differ(session.requests.len(), planned.len())
            ),
        );
    }
    for (r, step) in session.requests.iter().zip(&planned) {
        let found = json!({ "body": r.body, "body_sha256": r.body_sha256, "scored": r.scored, "phase": r.phase });
        let expected = json!({ "body": step.body, "body_sha256": step.sha256, "scored": step.scored, "phase": step.phase });
        for (field, found, expected) in differences(&found, &expected) {
            audit.fail(
                &file,
                format!("{}/{field}", r.index),
                format!("{} by plan.json", differ(found, expected)),
            );
        }
    }
    for (i, r) in session.requests.iter().enumerate() {
        if r.index as usize != i {
            audit.fail(&file, format!("line {} index", i + 1), differ(r.index, i));
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
        Err(error) => audit.fail_with(archive, &folder, &error),
    }
}

fn recompute(archive: &Archive, session: &mut SessionFacts, i: usize, audit: &mut Audit) {
    let name = session.name();
    let stored = session.requests[i].clone();
    let stem = format!("sessions/{name}/streams/{}", stored.stream);
    let raw = match archive.raw(&session.planned, &stored.stream) {
        Ok(raw) => raw,
        Err(error) => return audit.fail_with(archive, &stem, &error),
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
    // Sessions that were read back have gaps between tokens whatever their protocol.
    let gaps = session.readback.is_some();
    let again = stored.recompute(&raw, session.launch.kind, gaps);
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
                format!("{} by the raw stream", differ(found, expected)),
            );
        }
    }
    session.requests[i] = again;
}

/// Cached prompt tokens against what the study declares; a failed session says so itself.
fn cached(plan: &Plan, session: &SessionFacts, expected: ExpectCached, audit: &mut Audit) {
    if session.end.error.is_some() {
        return;
    }
    for (r, step) in session.requests.iter().zip(plan.steps_of(&session.planned)) {
        if let Some(what) = step.cache_broken(expected, r.cached_tokens) {
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
        let sent = session.requests.iter().find(|r| r.index == index);
        match sent {
            Some(r) if r.body == stored.body => {}
            _ => audit.fail(
                &file,
                format!("{index}/body"),
                format!(
                    "{} by requests.jsonl",
                    differ(stored.body.clone(), sent.map(|r| r.body.clone()))
                ),
            ),
        }
        let again = stored.recompute();
        audit.token_hashes += usize::from(again.prompt_hash.is_some());
        for (field, found, expected) in differences(&*stored, &again) {
            audit.fail(
                &file,
                format!("{index}/{field}"),
                format!("{} by the server's answer", differ(found, expected)),
            );
        }
        *stored = again;
    }
}
