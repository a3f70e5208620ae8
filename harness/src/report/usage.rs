//! What each session used, when its answers came, and what else happened meanwhile.

use super::content::Source;
use super::format::{MISSING, bare};
use super::page::{Block, Table};
use crate::archive::SessionFacts;
use crate::derive::{NOISE_RULES, Noise};
use crate::host::{HostSample, telemetry_not_shown};

/// The sections; nothing for archives before servers were read back.
pub(super) fn sections(source: &Source<'_>) -> Vec<Block> {
    let read_back = source
        .facts
        .sessions
        .iter()
        .filter(|s| s.readback.is_some());
    let mut sessions: Vec<&SessionFacts> = read_back.collect();
    // The halves of a paired session are one process.
    sessions.dedup_by_key(|s| s.name());
    if sessions.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![
        Block::Table(used(source, &sessions)),
        Block::Text(
            "Energy runs from the last sample before the first request to the first one after the last answer, warm-ups \
             included, over CPU packages, their DRAM and GPUs, for all that ran; a dash where the host shows none to \
             this user. Of paired sessions none is given."
                .into(),
        ),
    ];
    if source.figures.protocol().is_fresh() {
        blocks.push(Block::Table(times(source, &sessions)));
        blocks.push(Block::Text(
            "TTFT to the first byte, the first token and the first token of the visible answer: medians over the session's \
             scored requests. Percentiles stand where enough requests bound them: 29 for p90, 59 for p95, 299 for p99."
                .into(),
        ));
    }
    blocks.push(Block::Heading("Noise, by the sessions that it touched"));
    let all = source.figures.noise();
    if all.is_empty() {
        blocks.push(Block::Text("Nothing was found.".into()));
    } else {
        blocks.push(Block::Table(noise(all)));
    }
    blocks.push(Block::Text(NOISE_RULES.into()));
    blocks
}

fn used(source: &Source<'_>, sessions: &[&SessionFacts]) -> Table {
    const COLUMNS: [(&str, &str); 8] = [
        ("RSS, MiB", "peak_rss"),
        ("CPU, ms", "cpu"),
        ("Minor faults", "minor_faults"),
        ("Major faults", "major_faults"),
        ("Read, MiB", "read_bytes"),
        ("Energy, J", "energy"),
        ("J/token", "energy_per_token"),
        ("CPU, MHz", "host_cpu_mhz"),
    ];
    let mut table = Table::new(&["Session"], 1);
    table
        .head
        .extend(COLUMNS.map(|(title, _)| title.to_owned()));
    table.head.push("Noise".into());
    for session in sessions {
        let name = session.name();
        let at = |metric: &str| bare(source.figures.get(&format!("session/{name}/{metric}")));
        let mut row = vec![name.clone()];
        row.extend(COLUMNS.map(|(_, metric)| at(metric)));
        let mut kinds: Vec<&str> = Vec::new();
        for found in source.figures.noise().iter().filter(|n| n.session == name) {
            if !kinds.contains(&found.kind.title()) {
                kinds.push(found.kind.title());
            }
        }
        row.push(if kinds.is_empty() {
            "none found".into()
        } else {
            kinds.join(", ")
        });
        table.rows.push(row);
    }
    table
}

fn times(source: &Source<'_>, sessions: &[&SessionFacts]) -> Table {
    const COLUMNS: [(&str, &str); 9] = [
        ("First byte, s", "first_byte"),
        ("First token, s", "ttft"),
        ("First content, s", "first_content"),
        ("TTFT p90, s", "ttft_p90"),
        ("TPOT, s", "tpot"),
        ("TPOT p90, s", "tpot_p90"),
        ("ITL, s", "itl"),
        ("ITL p90, s", "itl_p90"),
        ("ITL p99, s", "itl_p99"),
    ];
    let mut table = Table::new(&["Session"], 1);
    table
        .head
        .extend(COLUMNS.map(|(title, _)| title.to_owned()));
    let names = sessions
        .iter()
        .map(|s| (format!("session/{}", s.name()), s.name()));
    let arms = source.figures.arms().iter();
    let arms = arms.map(|arm| (format!("arm/{arm}"), format!("all of {arm}")));
    for (scope, name) in names.chain(arms) {
        let mut row = vec![name];
        row.extend(COLUMNS.map(|(_, m)| bare(source.figures.get(&format!("{scope}/{m}")))));
        table.rows.push(row);
    }
    table
}

fn noise(all: &[Noise]) -> Table {
    let mut table = Table::new(&["Session", "Role", "At, UTC", "Kind", "What"], 5);
    for found in all {
        let role = if found.scored { "scored" } else { "burn-in" };
        table.rows.push(vec![
            found.session.clone(),
            role.into(),
            found.at.clone().unwrap_or_else(|| MISSING.into()),
            found.kind.title().into(),
            found.words.clone(),
        ]);
    }
    table
}

/// What this host does not show, in words: facts by their names in `host.json`, telemetry by what
/// it is; nothing for archives before that.
pub(super) fn not_shown(source: &Source<'_>) -> Option<String> {
    let sessions = source
        .facts
        .sessions
        .iter()
        .filter(|s| s.readback.is_some());
    let samples: Vec<&HostSample> = sessions.flat_map(|s| &s.samples).collect();
    if samples.is_empty() {
        return None;
    }
    let unseen = telemetry_not_shown(&samples).into_iter().map(str::to_owned);
    let facts = source.facts.host.not_shown().into_iter();
    let missing: Vec<String> = facts.chain(unseen).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "Not shown by this machine, so nowhere in the evidence: {}",
            missing.join(", ")
        )
    })
}
