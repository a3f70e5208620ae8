//! Settings as they were read back, next to what was expected.

use super::format::MISSING;
use super::page::{Block, Table};
use crate::derive::{Figures, SessionSettings, Setting, Verdicted, shown};

/// The section; nothing for archives before servers were read back.
pub(super) fn section(figures: &Figures) -> Vec<Block> {
    let all = figures.settings();
    if all.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(
        &[
            "Arm", "Setting", "Expected", "Found", "Verdict", "Sessions", "Shown by",
        ],
        7,
    );
    for arm in figures.arms() {
        let mine: Vec<&SessionSettings> = all.iter().filter(|s| s.arm == *arm).collect();
        for (setting, sessions) in distinct(&mine) {
            table
                .rows
                .push(row(arm, setting, sessions.len(), mine.len(), &sessions));
        }
    }
    let note = "What servers were found to be, from their own routes, their logs and their processes; a flag is only what \
                was asked for. Nothing is guessed: what no source shows is not shown. Expected is what the study's `expect` \
                tables, `threads`, `ctx` and `model` say.";
    vec![
        Block::Heading("Settings, read back"),
        Block::Table(table),
        Block::Text(note.into()),
    ]
}

/// Each different outcome of a setting, with the sessions that it holds for. The source alone makes
/// no difference: it may hold a time or a place.
fn distinct<'a>(sessions: &[&'a SessionSettings]) -> Vec<(&'a Setting, Vec<&'a str>)> {
    let mut out: Vec<(&Setting, Vec<&str>)> = Vec::new();
    let same = |a: &Setting, b: &Setting| {
        (&a.name, &a.expected, &a.found, a.verdict) == (&b.name, &b.expected, &b.found, b.verdict)
    };
    for session in sessions {
        for setting in &session.settings {
            if let Some((_, names)) = out.iter_mut().find(|(known, _)| same(known, setting)) {
                names.push(&session.session);
            } else {
                // Beside the others of its name.
                let at = out
                    .iter()
                    .rposition(|(known, _)| known.name == setting.name);
                let at = at.map_or(out.len(), |at| at + 1);
                out.insert(at, (setting, vec![session.session.as_str()]));
            }
        }
    }
    out
}

fn row(arm: &str, setting: &Setting, count: usize, of: usize, names: &[&str]) -> Vec<String> {
    let verdict = match setting.verdict {
        Some(Verdicted::Ok) => "ok",
        Some(Verdicted::Differs) => "DIFFERS",
        Some(Verdicted::NotShown) => "not shown",
        None => MISSING,
    };
    let expected = setting.expected.as_ref();
    vec![
        arm.to_owned(),
        setting.name.clone(),
        expected.map_or_else(|| MISSING.to_owned(), |value| shown(Some(value))),
        setting
            .found
            .as_ref()
            .map_or_else(|| MISSING.to_owned(), |value| shown(Some(value))),
        verdict.to_owned(),
        if count == of {
            format!("all {of}")
        } else {
            names.join(", ")
        },
        setting.source.clone().unwrap_or_else(|| MISSING.to_owned()),
    ]
}
