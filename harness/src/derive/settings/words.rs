//! Settings in words: the first lines of reports, why a strict session fails, one line a study.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{Asked, settings};
use super::setting::{By, SessionSettings, Setting, Verdicted};
use super::silent;
use crate::archive::Facts;
use crate::host::HostFacts;
use crate::server::{LaunchFacts, Readback};
use crate::study::Arm;

/// A found or expected value for people.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "not shown".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(all)) => {
            let all: Vec<String> = all.iter().map(|v| shown(Some(v))).collect();
            if all.is_empty() {
                "none".to_owned()
            } else {
                all.join(" ")
            }
        }
        Some(other) => other.to_string(),
    }
}

fn differs(setting: &Setting) -> String {
    let who = match setting.by {
        Some(By::Study) => "the study asks for",
        _ => "expected",
    };
    format!(
        "{} is {}, {who} {} [{}]",
        setting.name,
        shown(setting.found.as_ref()),
        shown(setting.expected.as_ref()),
        setting.source.as_deref().unwrap_or_default()
    )
}

/// A server that has just become ready.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// What the study says of it.
    pub arm: &'a Arm,
    /// How it was started.
    pub launch: &'a LaunchFacts,
    /// What it said, its log included.
    pub readback: &'a Readback,
    /// The machine.
    pub host: &'a HostFacts,
}

/// What breaks the terms of a strict study, each with what would be right.
pub fn broken_terms(terms: &Terms<'_>) -> Vec<String> {
    let found = settings(&Asked::of_arm(terms.arm), terms.launch, terms.readback);
    let session = SessionSettings {
        session: String::new(),
        arm: terms.arm.name.clone(),
        settings: found,
    };
    let mut out = Vec::new();
    for setting in &session.settings {
        match (setting.verdict, setting.by) {
            (Some(Verdicted::Differs), _) => out.push(differs(setting)),
            (Some(Verdicted::NotShown), Some(By::Expect)) => out.push(format!(
                "{} is not shown by this server, expected {} (llama.cpp shows more with `-lv 4` among \
                 the arm's args; else take it out of `expect`)",
                setting.name,
                shown(setting.expected.as_ref())
            )),
            _ => {}
        }
    }
    let command = &terms.launch.command;
    out.extend(silent::of_session(&session, command, terms.host));
    out
}

/// What readers must know first: settings that are not what was asked for, by arm; devices and
/// instructions that nobody asked about; sessions of an arm that were not set alike.
pub(in crate::derive) fn warnings(facts: &Facts, all: &[SessionSettings]) -> Vec<String> {
    let mut out = Vec::new();
    for arm in &facts.plan.arms {
        let mine: Vec<&SessionSettings> = all.iter().filter(|s| s.arm == *arm).collect();
        out.extend(by_sessions(
            mine.iter().flat_map(|s| {
                let wrong = |setting: &&Setting| setting.verdict == Some(Verdicted::Differs);
                let wrong = s.settings.iter().filter(wrong);
                wrong.map(move |setting| {
                    (format!("{arm}: {}", differs(setting)), s.session.as_str())
                })
            }),
            mine.len(),
        ));
        let silent = mine.iter().flat_map(|s| {
            let recorded = facts.sessions.iter().find(|f| f.name() == s.session);
            let said = recorded.map(|f| silent::of_session(s, &f.launch.command, &facts.host));
            let said = said.unwrap_or_default().into_iter();
            said.map(move |what| (what, s.session.as_str()))
        });
        out.extend(by_sessions(silent, mine.len()));
        out.extend(unlike(arm, &mine));
        let unseen: BTreeSet<&str> = mine
            .iter()
            .flat_map(|s| &s.settings)
            .filter(|s| s.verdict == Some(Verdicted::NotShown))
            .map(|s| s.name.as_str())
            .collect();
        if !unseen.is_empty() {
            let unseen: Vec<&str> = unseen.into_iter().collect();
            out.push(format!(
                "{arm}: expected and not shown by its server, so neither right nor wrong: {}.",
                unseen.join(", ")
            ));
        }
    }
    out.extend(silent::across_arms(facts, all));
    out
}

/// Each thing said once, with the sessions that it is true of, unless that is all of them.
fn by_sessions<'a>(said: impl Iterator<Item = (String, &'a str)>, of: usize) -> Vec<String> {
    let mut grouped: Vec<(String, Vec<&str>)> = Vec::new();
    for (what, session) in said {
        match grouped.iter_mut().find(|(known, _)| *known == what) {
            Some((_, sessions)) => sessions.push(session),
            None => grouped.push((what, vec![session])),
        }
    }
    let words = grouped.into_iter().map(|(what, sessions)| {
        if sessions.len() == of {
            format!("{what}.")
        } else {
            format!("{what}, in {}.", sessions.join(", "))
        }
    });
    words.collect()
}

/// Settings that one arm's sessions do not share; how many threads a process has besides its
/// workers, and what it holds on a device to the byte, may vary.
fn unlike(arm: &str, sessions: &[&SessionSettings]) -> Vec<String> {
    let names: BTreeSet<&str> = sessions
        .iter()
        .flat_map(|s| &s.settings)
        .map(|s| s.name.as_str())
        .filter(|name| !matches!(*name, "process_threads" | "device_memory"))
        .collect();
    let differing = names.into_iter().filter_map(|name| {
        let values: Vec<(String, &str)> = sessions
            .iter()
            .map(|s| {
                let found = s.get(name).and_then(|s| s.found.as_ref());
                (shown(found), s.session.as_str())
            })
            .collect();
        let distinct: BTreeSet<&String> = values.iter().map(|(v, _)| v).collect();
        if distinct.len() < 2 {
            return None;
        }
        let said: Vec<String> = distinct
            .into_iter()
            .map(|value| {
                let of: Vec<&str> = values
                    .iter()
                    .filter(|(v, _)| v == value)
                    .map(|(_, s)| *s)
                    .collect();
                format!("{value} in {}", of.join(", "))
            })
            .collect();
        Some(format!(
            "{arm} was not set alike in all sessions: {name} is {}.",
            said.join("; ")
        ))
    });
    differing.collect()
}

/// One line an arm for a terminal: how many settings were read back, and what became of those that
/// were expected.
pub fn gists(all: &[SessionSettings]) -> Vec<String> {
    let mut arms: Vec<&str> = Vec::new();
    for session in all {
        if !arms.contains(&session.arm.as_str()) {
            arms.push(&session.arm);
        }
    }
    let line = |arm: &str| {
        let mine: Vec<&SessionSettings> = all.iter().filter(|s| s.arm == arm).collect();
        let names = |wanted: &dyn Fn(&Setting) -> bool| {
            let settings = mine.iter().flat_map(|s| &s.settings);
            let names: BTreeSet<&str> = settings
                .filter(|s| wanted(s))
                .map(|s| s.name.as_str())
                .collect();
            names.into_iter().collect::<Vec<_>>()
        };
        let read = names(&|s| s.found.is_some()).len();
        let with = |verdict| names(&|s: &Setting| s.verdict == Some(verdict));
        let (differ, unseen) = (with(Verdicted::Differs), with(Verdicted::NotShown));
        let ok = with(Verdicted::Ok);
        let ok = ok
            .iter()
            .filter(|n| !differ.contains(n) && !unseen.contains(n))
            .count();
        let list = |title: &str, names: &[&str]| match names {
            [] => String::new(),
            names => format!(", {title}: {}", names.join(", ")),
        };
        format!(
            "{arm}: {read} settings read back, {ok} as expected{}{}",
            list("differ", &differ),
            list("not shown", &unseen)
        )
    };
    arms.into_iter().map(line).collect()
}
