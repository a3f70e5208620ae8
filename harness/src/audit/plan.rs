//! Was the plan the study's, and was it followed?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toml::Spanned;

use super::Audit;
use super::evidence::Evidence;
use super::files::is_unfinished;
use super::words::differ;
use crate::archive::{Archive, Event, SessionFacts, hash_file, session_folder_name, sha256_hex};
use crate::study::{Plan, StudyFile, Switch, Way, archived_name, coins, order_of, written_phases};

/// Checks study file, bodies, the set of sessions, their arms and their order in time.
pub(super) fn check(archive: &Archive, evidence: &Evidence, audit: &mut Audit) {
    let plan = archive.plan();
    if !evidence.lacks("study.toml") {
        let hash = sha256_hex(&evidence.facts.study_toml);
        if plan.study_sha256 != hash {
            let what = differ(plan.study_sha256.clone(), hash);
            audit.fail("plan.json", "study_sha256", format!("{what} of study.toml"));
        }
    }
    if let Some(file) = &evidence.study {
        expansion(archive, file, audit);
    }
    bodies(archive, audit);
    folders(archive, evidence, audit);
    order(evidence, audit);
    commits(archive, evidence, audit);
}

/// The plan again from the study file: coins from the seed, order from coins and arms.
fn expansion(archive: &Archive, file: &StudyFile, audit: &mut Audit) {
    let plan = archive.plan();
    let arms: Vec<String> = file.arms.iter().map(|a| a.name.as_ref().clone()).collect();
    let again = coins(file.seed, *file.quartets.as_ref());
    let named = |paths: &[Spanned<String>]| -> Vec<String> {
        let names: Vec<String> = paths.iter().map(|p| archived_name(p.as_ref())).collect();
        file.protocol.archived(&names)
    };
    let planned = |bodies: &[(String, String)]| -> Vec<String> {
        bodies.iter().map(|(name, _)| name.clone()).collect()
    };
    let workload = &file.workload;
    for (field, same) in [
        ("study", plan.study == *file.name.as_ref()),
        ("seed", plan.seed == file.seed),
        ("arms", plan.arms == arms),
        ("coins", plan.coins == again),
        (
            "sessions",
            plan.sessions == order_of(&file.protocol, &arms, &again, file.burn_in),
        ),
        ("looks", plan.looks == file.looks),
        ("protocol", plan.protocol == file.protocol),
        (
            "phases",
            plan.phases
                == written_phases(
                    &file.protocol,
                    &named(&workload.warmups),
                    &named(workload.bodies.as_ref()),
                ),
        ),
        (
            "bodies",
            planned(&plan.bodies) == named(workload.bodies.as_ref()),
        ),
        (
            "warmups",
            planned(&plan.warmups) == named(&workload.warmups),
        ),
    ] {
        if !same {
            audit.fail(
                "plan.json",
                field,
                "differs from what study.toml expands to",
            );
        }
    }
}

fn bodies(archive: &Archive, audit: &mut Audit) {
    let mut named = BTreeSet::new();
    for (name, expected) in archive.plan().warmups.iter().chain(&archive.plan().bodies) {
        named.insert(name.as_str());
        match archive.body(name) {
            Ok((_, found)) if found == *expected => {}
            Ok((_, found)) => {
                let what = differ(found, expected.clone());
                audit.fail(
                    format!("workload/{name}"),
                    "sha256",
                    format!("{what} by plan.json"),
                );
            }
            Err(error) => audit.fail_with(archive, &format!("workload/{name}"), &error),
        }
    }
    for name in entries(archive, "workload", audit) {
        if !named.contains(name.as_str()) {
            audit.fail(format!("workload/{name}"), "", "is not in the plan");
        }
    }
}

fn folders(archive: &Archive, evidence: &Evidence, audit: &mut Audit) {
    let planned: BTreeSet<String> = evidence.expected.iter().map(session_folder_name).collect();
    let mut found: BTreeSet<String> = entries(archive, "sessions", audit).into_iter().collect();
    if is_unfinished(archive) {
        // What was under way is discarded when the study goes on.
        found.retain(|name| !(name.starts_with('.') && name.ends_with(".partial")));
    }
    for missing in planned.difference(&found) {
        audit.fail(format!("sessions/{missing}"), "", "is planned but missing");
    }
    for extra in found.difference(&planned) {
        let why = if evidence.expected.len() < archive.plan().sessions.len() {
            "is not in the plan, or comes after the look that ended the study"
        } else {
            "is not in the plan"
        };
        audit.fail(format!("sessions/{extra}"), "", why);
    }
}

fn entries(archive: &Archive, folder: &str, audit: &mut Audit) -> Vec<String> {
    match fs::read_dir(archive.path().join(folder)) {
        Ok(entries) => entries
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect(),
        Err(error) => {
            audit.fail(folder, "", format!("cannot list it: {error}"));
            Vec::new()
        }
    }
}

/// Arms as launched, and clocks that run forward through the plan. An interruption may restart the
/// clock (a reboot), so order is checked only where the run's log shows none between two sessions.
fn order(evidence: &Evidence, audit: &mut Audit) {
    let mut before: Option<(String, u64)> = None;
    let interrupted = interrupted_before(&evidence.facts.events);
    let log_is_read = !evidence.lacks("events.jsonl");
    for session in &evidence.facts.sessions {
        let name = session.name();
        audit.sessions += 1;
        let (found, planned) = (&session.launch.arm, &session.planned.arm);
        if found != planned {
            let what = differ(found.clone(), planned.clone());
            audit.fail(
                format!("sessions/{name}/launch.json"),
                "arm",
                format!("{what} by plan.json"),
            );
        }
        let mut times = vec![
            ("end.json started_ns", session.end.started_ns),
            ("launch.json launched_ns", session.launch.launched_ns),
            ("launch.json ready_ns", session.launch.ready_ns),
        ];
        phases(&evidence.facts.plan, session, &mut times);
        crowded(&evidence.facts.plan, session, audit);
        scheduled(&evidence.facts.plan, session, audit);
        if let Some(file) = &evidence.study {
            switched(file, session, audit);
        }
        times.push(("end.json ended_ns", session.end.ended_ns));
        for step in times.windows(2) {
            if step[1].1 < step[0].1 {
                audit.fail(
                    format!("sessions/{name}"),
                    step[1].0,
                    format!(
                        "found {}, expected {} ({}) or later",
                        step[1].1, step[0].1, step[0].0
                    ),
                );
            }
        }
        if let Some((previous, ended)) = &before
            && session.end.started_ns < *ended
            && log_is_read
            && !interrupted.contains(&name)
        {
            audit.fail(
                format!("sessions/{name}/end.json"),
                "started_ns",
                format!(
                    "found {}, expected {ended} (the end of {previous}) or later",
                    session.end.started_ns
                ),
            );
        }
        before = Some((name, session.end.ended_ns));
    }
}

/// The times of a session's requests in an order in which they cannot run backwards: request by
/// request, or, of requests in flight together, from the first one written to the last one's end.
fn phases(plan: &Plan, session: &SessionFacts, times: &mut Vec<(&'static str, u64)>) {
    let mut rest = session.requests.as_slice();
    for phase in plan.phases() {
        let (now, later) = rest.split_at(phase.requests.len().min(rest.len()));
        rest = later;
        let sent = now.iter().map(|r| ("requests.jsonl sent_ns", r.sent_ns));
        let done = now.iter().map(|r| ("requests.jsonl done_ns", r.done_ns));
        match phase.way {
            Way::OneByOne => times.extend(sent.zip(done).flat_map(|(sent, done)| [sent, done])),
            Way::Together | Way::Workers(_) | Way::Timed => {
                times.extend(sent.min_by_key(|(_, ns)| *ns));
                times.extend(done.max_by_key(|(_, ns)| *ns));
            }
        }
    }
}

/// Requests of a level that were in flight at once: never more than its workers.
fn crowded(plan: &Plan, session: &SessionFacts, audit: &mut Audit) {
    for level in plan.levels() {
        let Way::Workers(workers) = level.way else {
            continue;
        };
        let here = session.requests.iter();
        let here = here.filter(|r| level.indices.contains(&r.index));
        // An end before a beginning at the same time: a worker's next request.
        let mut edges: Vec<(u64, i64)> = here
            .flat_map(|r| [(r.sent_ns, 1), (r.done_ns, -1)])
            .collect();
        edges.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, change) in edges {
            now += change;
            most = most.max(now);
        }
        if most > i64::from(workers) {
            audit.fail(
                format!("sessions/{}/requests.jsonl", session.name()),
                level.name.unwrap_or_default(),
                format!("found {most} requests in flight at once, expected {workers} at most"),
            );
        }
    }
}

/// Timed requests against the plan's times: all of a phase from one start, none sent early, and the
/// start not before what came before it.
fn scheduled(plan: &Plan, session: &SessionFacts, audit: &mut Audit) {
    let file = format!("sessions/{}/requests.jsonl", session.name());
    let mut before = session.launch.ready_ns;
    let mut starts: BTreeMap<Option<String>, u64> = BTreeMap::new();
    for (r, step) in session.requests.iter().zip(plan.steps_of(&session.planned)) {
        let field = format!("{}/due_ns", r.index);
        match (r.due_ns, step.due_ns) {
            (None, None) => before = before.max(r.done_ns),
            (Some(due), Some(offset)) => {
                let known = starts.get(&step.phase).copied();
                let start = known.unwrap_or_else(|| due.saturating_sub(offset));
                if due != start.saturating_add(offset) {
                    audit.fail(
                        &file,
                        &field,
                        format!("{} by plan.json", differ(due, start.saturating_add(offset))),
                    );
                }
                if known.is_none() && start < before {
                    let what = format!("its level starts at {start}, expected {before} or later");
                    audit.fail(&file, &field, what);
                }
                if r.sent_ns < due {
                    let what = format!("was sent at {}, before it was due ({due})", r.sent_ns);
                    audit.fail(&file, &field, what);
                }
                starts.insert(step.phase, start);
                before = before.max(r.done_ns);
            }
            (found, expected) => audit.fail(
                &file,
                &field,
                format!("{} by plan.json", differ(found, expected)),
            ),
        }
    }
}

/// Calls between the arms of a paired study: before each request of an arm that is switched to by
/// one, that arm's own, answered before the request was sent and sent after the one before.
fn switched(file: &StudyFile, session: &SessionFacts, audit: &mut Audit) {
    let place = format!("sessions/{}/switches.jsonl", session.name());
    let protocol = &file.protocol;
    let mut calls = session.switches.iter();
    let mut before = session.launch.ready_ns;
    for r in &session.requests {
        let arm = protocol.arm_of(&r.body);
        let written = file
            .arms
            .iter()
            .find(|a| Some(a.name.as_ref().as_str()) == arm);
        let switch = written.and_then(|a| a.switch.as_ref()?.as_ref().resolve().ok());
        if let Some(Switch::Call { path, body }) = switch {
            let Some(call) = calls.next() else {
                audit.fail(&place, r.index.to_string(), "is missing");
                return;
            };
            let found = (call.index, Some(call.arm.as_str()), &call.path, &call.body);
            if found != (r.index, arm, &path, &body) {
                let what = format!(
                    "found {found:?}, expected {:?} by study.toml",
                    (r.index, arm, &path, &body)
                );
                audit.fail(&place, r.index.to_string(), what);
            }
            if call.error.is_some() && session.end.error.is_none() {
                audit.fail(
                    &place,
                    format!("{}/error", r.index),
                    "failed, and the session did not",
                );
            }
            if !(before <= call.sent_ns
                && call.sent_ns <= call.done_ns
                && call.done_ns <= r.sent_ns)
            {
                let what = "was not made between the request before and the one that it is for";
                audit.fail(&place, format!("{}/sent_ns", r.index), what);
            }
        }
        before = r.done_ns;
    }
    if let Some(call) = calls.next() {
        audit.fail(&place, call.index.to_string(), "belongs to no request");
    }
}

/// Sessions that began after a `resumed` event with no other session begun in between.
fn interrupted_before(events: &[Event]) -> BTreeSet<String> {
    let mut resumed = false;
    let mut out = BTreeSet::new();
    for event in events {
        match event.kind.as_str() {
            "resumed" => resumed = true,
            "session-begun" if resumed => {
                out.insert(
                    event.detail["session"]
                        .as_str()
                        .unwrap_or_default()
                        .to_string(),
                );
                resumed = false;
            }
            _ => {}
        }
    }
    out
}

/// The run's log: chain unbroken, and the last commit of each session names its `session.json`.
fn commits(archive: &Archive, evidence: &Evidence, audit: &mut Audit) {
    if evidence.lacks("events.jsonl") {
        return;
    }
    let events = &evidence.facts.events;
    audit.events += events.len();
    let mut position = 0;
    for planned in &evidence.expected {
        let name = session_folder_name(planned);
        let committed =
            events.iter().enumerate().rev().find(|(_, e)| {
                e.kind == "session-committed" && e.detail["session"] == name.as_str()
            });
        let Some((at, event)) = committed else {
            audit.fail(
                "events.jsonl",
                &name,
                "no commit of this session is recorded",
            );
            continue;
        };
        if at < position {
            audit.fail(
                "events.jsonl",
                &name,
                "was committed before a session that the plan puts first",
            );
        }
        position = at;
        let path = archive
            .path()
            .join("sessions")
            .join(&name)
            .join("session.json");
        match hash_file(&path) {
            Ok(found) if event.detail["session_json_sha256"] == found.as_str() => {}
            Ok(found) => audit.fail(
                format!("sessions/{name}/session.json"),
                "sha256",
                format!(
                    "{} by events.jsonl",
                    differ(found, event.detail["session_json_sha256"].clone())
                ),
            ),
            // A missing folder is reported once, by `folders`.
            Err(_) => {}
        }
    }
}
