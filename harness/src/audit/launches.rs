//! Whether the launches of an arm are one another's, the study's and the host's.
//!
//! Nothing else is computed from `launch.json`, so a forger who makes every hash anew could give
//! one session another server. Sessions of one arm must agree in all but port and paths.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Audit;
use super::evidence::Evidence;
use super::words::differ;
use crate::archive::SessionFacts;
use crate::host::HostFacts;
use crate::server::{LaunchFacts, ServerKind, may_be, redact, redact_args};
use crate::study::{ArmFile, StudyFile};

/// Checks every recorded launch.
pub(super) fn check(evidence: &Evidence, audit: &mut Audit) {
    for arm in &evidence.facts.plan.arms {
        let sessions: Vec<&SessionFacts> = evidence
            .facts
            .sessions
            .iter()
            .filter(|s| s.planned.arm == *arm)
            .collect();
        among_themselves(&sessions, audit);
        if let Some(study) = &evidence.study
            && let Some(declared) = study.arms.iter().find(|a| a.name.as_ref() == arm)
        {
            for session in sessions {
                with_study(session, study, declared, audit);
            }
        }
    }
    with_log(evidence, audit);
    with_host(evidence, audit);
}

fn file_of(session: &SessionFacts) -> String {
    format!("sessions/{}/launch.json", session.name())
}

/// Facts that no session of an arm may have otherwise than the others. Paths are compared by their
/// last part: a resumed study may run in a moved checkout.
fn facts(launch: &LaunchFacts) -> Vec<(String, Value)> {
    let mut facts = vec![
        ("kind".to_owned(), launch.kind.name().into()),
        ("label".to_owned(), launch.label.clone().into()),
        ("models".to_owned(), launch.models.len().into()),
    ];
    let files = launch.models.iter().enumerate();
    let files = files.map(|(i, model)| (format!("models/{i}"), model));
    for (name, file) in files.chain([("binary".to_owned(), &launch.binary)]) {
        facts.push((format!("{name}/path"), last_part(&file.path).into()));
        facts.push((format!("{name}/bytes"), file.bytes.into()));
        facts.push((format!("{name}/sha256"), file.sha256.clone().into()));
    }
    // Which libraries are mapped at the moment of readiness may vary; what each is may not.
    for library in &launch.libraries {
        let name = format!("libraries/{}", library.path);
        facts.push((name, library.sha256.clone().into()));
    }
    for (table, entries) in [("env", &launch.env), ("build", &launch.build)] {
        // A build made again prints other words; what it made is compared by its hash.
        let entries = entries.iter().filter(|(name, _)| *name != "log_sha256");
        for (name, value) in entries {
            facts.push((format!("{table}/{name}"), value.clone().into()));
        }
    }
    facts
}

fn among_themselves(sessions: &[&SessionFacts], audit: &mut Audit) {
    let of_all: Vec<Vec<(String, Value)>> = sessions.iter().map(|s| facts(&s.launch)).collect();
    let names: BTreeSet<&String> = of_all.iter().flatten().map(|(name, _)| name).collect();
    for name in names {
        let values: Vec<Option<&Value>> = of_all
            .iter()
            .map(|facts| facts.iter().find(|(n, _)| n == name).map(|(_, v)| v))
            .collect();
        let optional = name.starts_with("libraries/");
        let same = |a: usize, b: usize| {
            values[a] == values[b] || (optional && (values[a].is_none() || values[b].is_none()))
        };
        odd_ones(sessions, name, same, |i| values[i].cloned().into(), audit);
    }
    let same = |a: usize, b: usize| {
        let (a, b) = (&sessions[a].launch, &sessions[b].launch);
        commands_agree(a, b)
    };
    let said = |i: usize| sessions[i].launch.command.join(" ").into();
    odd_ones(sessions, "command", same, said, audit);
}

/// Reports the sessions that differ from what most say; the first to say it is named.
fn odd_ones(
    sessions: &[&SessionFacts],
    field: &str,
    same: impl Fn(usize, usize) -> bool,
    said: impl Fn(usize) -> Value,
    audit: &mut Audit,
) {
    let all = 0..sessions.len();
    let agreeing = |i: usize| all.clone().filter(|&j| same(i, j)).count();
    // `max_by_key` takes the last of equals.
    let Some(usual) = all.clone().rev().max_by_key(|&i| agreeing(i)) else {
        return;
    };
    for odd in all.filter(|&i| !same(usual, i)) {
        let what = differ(said(odd), said(usual));
        let as_in = sessions[usual].name();
        audit.fail(
            file_of(sessions[odd]),
            field,
            format!("{what} as in session {as_in}"),
        );
    }
}

/// Word by word: equal, or each with its own port in the same place, or absolute paths that end
/// alike.
fn commands_agree(a: &LaunchFacts, b: &LaunchFacts) -> bool {
    let without_port =
        |word: &str, launch: &LaunchFacts| word.replace(&launch.port.to_string(), "{port}");
    a.command.len() == b.command.len()
        && a.command.iter().zip(&b.command).all(|(x, y)| {
            let paths = x.starts_with(['/', '~']) && y.starts_with(['/', '~']);
            x == y
                || without_port(x, a) == without_port(y, b)
                || (paths && last_part(x) == last_part(y))
        })
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What the study file says of the arm, against what was launched.
fn with_study(session: &SessionFacts, study: &StudyFile, arm: &ArmFile, audit: &mut Audit) {
    let launch = &session.launch;
    let file = file_of(session);
    let mut expect = |field: &str, found: Value, expected: Value| {
        if found != expected {
            let what = differ(found, expected);
            audit.fail(&file, field, format!("{what} by study.toml"));
        }
    };
    let label = arm.label.as_ref().unwrap_or(arm.name.as_ref());
    expect("label", launch.label.clone().into(), label.clone().into());
    let Some(kind) = arm.kind(&study.base) else {
        return;
    };
    expect("kind", launch.kind.name().into(), kind.name().into());
    let mut env = study.base.env.clone();
    env.extend(arm.env.clone());
    // An older program may have redacted less: both sides are looked at redacted.
    let (env, recorded) = (redact(&env), redact(&launch.env));
    let names: BTreeSet<&String> = env.keys().chain(recorded.keys()).collect();
    for name in names {
        let (found, expected) = (recorded.get(name).cloned(), env.get(name).cloned());
        if let (Some(found), Some(expected)) = (&found, &expected)
            && may_be(found, expected)
        {
            continue;
        }
        expect(&format!("env/{name}"), found.into(), expected.into());
    }
    let flags = match kind {
        ServerKind::LlamaCpp => [("-t", "threads"), ("-c", "ctx")],
        ServerKind::PalindromeEngine => [("--threads", "threads"), ("--ctx", "ctx")],
        ServerKind::Openai | ServerKind::Mock => return,
    };
    let values = [
        arm.threads.or(study.base.threads),
        arm.ctx.or(study.base.ctx),
    ];
    for ((flag, name), value) in flags.into_iter().zip(values) {
        let Some(value) = value else { continue };
        let mut after = launch.command.iter().skip_while(|w| *w != flag).skip(1);
        let found = after.next().cloned();
        expect(
            &format!("command {flag} ({name})"),
            found.into(),
            value.to_string().into(),
        );
    }
    let args = study.base.args.iter().chain(&arm.args).cloned();
    let args = redact_args(args);
    let command = redact_args(launch.command.iter().cloned());
    let end = &command[command.len().saturating_sub(args.len())..];
    let said = end.len() == args.len() && end.iter().zip(&args).all(|(a, b)| may_be(a, b));
    if !said {
        let found = end.join(" ");
        expect("command, last words", found.into(), args.join(" ").into());
    }
}

/// The run's log of a server that became ready, against its launch.
fn with_log(evidence: &Evidence, audit: &mut Audit) {
    for session in &evidence.facts.sessions {
        let name = session.name();
        let mut events = evidence.facts.events.iter().rev();
        let ready = |kind: &str, of: &Value| kind == "server-ready" && *of == name.as_str();
        let Some(event) = events.find(|e| ready(&e.kind, &e.detail["session"])) else {
            continue;
        };
        for (field, found) in [
            ("pid", session.launch.pid),
            ("port", session.launch.port.into()),
        ] {
            if event.detail[field] != found {
                let what = differ(found, event.detail[field].clone());
                let file = file_of(session);
                audit.fail(file, field, format!("{what} by events.jsonl"));
            }
        }
    }
}

/// A study that went on after an interruption must have gone on on the same machine.
fn with_host(evidence: &Evidence, audit: &mut Audit) {
    if evidence.lacks("host.json") {
        return;
    }
    let events = evidence.facts.events.iter();
    for event in events.filter(|e| e.kind == "host-on-resume") {
        let at = format!("{} host", event.seq);
        let later: HostFacts = match serde_json::from_value(event.detail["host"].clone()) {
            Ok(later) => later,
            Err(error) => {
                audit.fail("events.jsonl", at, error.to_string());
                continue;
            }
        };
        let pairs = later
            .machine()
            .into_iter()
            .zip(evidence.facts.host.machine());
        for ((field, found), (_, expected)) in pairs {
            if found != expected {
                let what = differ(found, expected);
                let at = format!("{at}/{field}");
                audit.fail("events.jsonl", at, format!("{what} by host.json"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::FileFact;

    fn launch(port: u16, command: &str) -> LaunchFacts {
        LaunchFacts {
            schema: "1.0".into(),
            arm: "A".into(),
            label: "A".into(),
            kind: ServerKind::Openai,
            command: command.split(' ').map(str::to_owned).collect(),
            env: [].into(),
            cwd: "/".into(),
            port,
            pid: 1,
            binary: FileFact {
                path: "/a".into(),
                bytes: 0,
                sha256: String::new(),
            },
            libraries: vec![],
            models: vec![],
            build: [].into(),
            launched_ns: 0,
            ready_ns: 0,
        }
    }

    #[test]
    fn commands_differ_in_port_and_folders_only() {
        let one = launch(32768, "/a/serve --listen=:32768 -c 32768 /m/x.gguf");
        for (port, other, agree) in [
            (40000, "/b/serve --listen=:40000 -c 32768 /n/x.gguf", true),
            (40000, "/b/serve --listen=:40001 -c 32768 /n/x.gguf", false),
            (40000, "/b/serve --listen=:40000 -c 4096 /n/x.gguf", false),
            (40000, "/b/serve --listen=:40000 -c 32768 /n/y.gguf", false),
            (40000, "/b/serve --listen=:40000 -c 32768", false),
        ] {
            assert_eq!(commands_agree(&one, &launch(port, other)), agree, "{other}");
        }
    }
}
