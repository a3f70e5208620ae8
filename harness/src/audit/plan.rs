//! Was the plan the study's, and was it followed?

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toml::Spanned;

use super::Audit;
use crate::archive::{Archive, hash_file, session_folder_name, sha256_hex};
use crate::study::{StudyFile, archived_name, coins, order as session_order};

/// Checks study file, bodies, the set of sessions, their arms and their order in time.
pub(super) fn check(archive: &Archive, audit: &mut Audit) {
    let plan = archive.plan();
    match archive.read("study.toml") {
        Ok(bytes) => {
            let found = sha256_hex(&bytes);
            if found != plan.study_sha256 {
                audit.fail(
                    "plan.json",
                    "study_sha256",
                    format!("is {}, study.toml has {found}", plan.study_sha256),
                );
            }
        }
        Err(error) => audit.fail_with("study.toml", &error),
    }
    expansion(archive, audit);
    bodies(archive, audit);
    folders(archive, audit);
    order(archive, audit);
    commits(archive, audit);
}

/// The plan again from the study file: coins from the seed, order from coins and arms.
fn expansion(archive: &Archive, audit: &mut Audit) {
    let plan = archive.plan();
    let Ok(bytes) = archive.read("study.toml") else {
        // Reported by the caller.
        return;
    };
    let text = String::from_utf8_lossy(&bytes);
    let file = match StudyFile::parse(Path::new("study.toml"), &text) {
        Ok(file) => file,
        Err(error) => return audit.fail("study.toml", "", error.to_string()),
    };
    let arms: Vec<String> = file.arms.iter().map(|a| a.name.as_ref().clone()).collect();
    let again = coins(file.seed, *file.quartets.as_ref());
    let named = |paths: &[Spanned<String>]| -> Vec<String> {
        paths.iter().map(|p| archived_name(p.as_ref())).collect()
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
            plan.sessions == session_order(&arms, &again, file.burn_in),
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
                audit.fail(
                    format!("workload/{name}"),
                    "",
                    format!("sha256 is {found}, the plan says {expected}"),
                );
            }
            Err(error) => audit.fail_with(&format!("workload/{name}"), &error),
        }
    }
    for name in entries(archive, "workload", audit) {
        if !named.contains(name.as_str()) {
            audit.fail(format!("workload/{name}"), "", "is not in the plan");
        }
    }
}

fn folders(archive: &Archive, audit: &mut Audit) {
    let planned: BTreeSet<String> = archive
        .plan()
        .sessions
        .iter()
        .map(session_folder_name)
        .collect();
    let found: BTreeSet<String> = entries(archive, "sessions", audit).into_iter().collect();
    for missing in planned.difference(&found) {
        audit.fail(format!("sessions/{missing}"), "", "is planned but missing");
    }
    for extra in found.difference(&planned) {
        audit.fail(format!("sessions/{extra}"), "", "is not in the plan");
    }
}

fn entries(archive: &Archive, folder: &str, audit: &mut Audit) -> Vec<String> {
    match fs::read_dir(archive.path().join(folder)) {
        Ok(entries) => entries
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect(),
        Err(error) => {
            audit.fail(folder, "", format!("cannot be listed: {error}"));
            Vec::new()
        }
    }
}

/// Arms as launched, and clocks that run forward through the plan. An interruption may restart the
/// clock (a reboot), so order is checked only where the run's log shows none between two sessions.
fn order(archive: &Archive, audit: &mut Audit) {
    let mut before: Option<(String, u64)> = None;
    let interrupted = interrupted_before(archive);
    for planned in &archive.plan().sessions {
        let name = session_folder_name(planned);
        if !archive.path().join("sessions").join(&name).is_dir() {
            continue;
        }
        let session = match archive.session(planned) {
            Ok(session) => session,
            Err(error) => {
                audit.fail_with(&format!("sessions/{name}"), &error);
                continue;
            }
        };
        audit.sessions += 1;
        if session.launch.arm != planned.arm {
            audit.fail(
                format!("sessions/{name}/launch.json"),
                "arm",
                format!(
                    "is {:?}, the plan says {:?}",
                    session.launch.arm, planned.arm
                ),
            );
        }
        let mut times = vec![
            ("end.json started_ns", session.end.started_ns),
            ("launch.json launched_ns", session.launch.launched_ns),
            ("launch.json ready_ns", session.launch.ready_ns),
        ];
        for r in &session.requests {
            times.push(("requests.jsonl sent_ns", r.sent_ns));
            times.push(("requests.jsonl done_ns", r.done_ns));
        }
        times.push(("end.json ended_ns", session.end.ended_ns));
        for step in times.windows(2) {
            if step[1].1 < step[0].1 {
                audit.fail(
                    format!("sessions/{name}"),
                    step[1].0,
                    format!("{} lies before {} {}", step[1].1, step[0].0, step[0].1),
                );
            }
        }
        if let Some((previous, ended)) = &before
            && session.end.started_ns < *ended
            && !interrupted.contains(&name)
        {
            audit.fail(
                format!("sessions/{name}/end.json"),
                "started_ns",
                format!(
                    "{} lies before the end of {previous}, {ended}",
                    session.end.started_ns
                ),
            );
        }
        before = Some((name, session.end.ended_ns));
    }
}

/// Sessions that began after a `resumed` event with no other session begun in between.
fn interrupted_before(archive: &Archive) -> BTreeSet<String> {
    let mut resumed = false;
    let mut out = BTreeSet::new();
    for event in archive.events().unwrap_or_default() {
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
fn commits(archive: &Archive, audit: &mut Audit) {
    let events = match archive.events() {
        Ok(events) => events,
        Err(error) => return audit.fail_with("events.jsonl", &error),
    };
    audit.events += events.len();
    let mut position = 0;
    for planned in &archive.plan().sessions {
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
                "",
                format!(
                    "sha256 is {found}, the run's log says {}",
                    event.detail["session_json_sha256"]
                ),
            ),
            // A missing folder is reported once, by `folders`.
            Err(_) => {}
        }
    }
}
