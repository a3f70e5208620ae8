//! What of a workload would make a comparison unfair, and what is only worth knowing.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::body::{BodyFacts, Route};
use super::fields::{LIMITS, NEEDED, OFF};
use super::gather::Gathered;
use super::tokens::{Counted, Counts};

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Servers would not be asked the same: the check fails.
    Unfair,
    /// Worth knowing.
    Note,
}

/// Something found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it weighs.
    pub weight: Weight,
    /// In words, with what would be right.
    pub what: String,
    /// The bodies that it is about; empty where it is about all together.
    pub bodies: Vec<String>,
}

/// A judged workload.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Each body and its prompt tokens.
    pub bodies: Vec<(BodyFacts, Counts)>,
    /// Findings, unfair ones first.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Whether servers would be asked the same.
    pub fn is_fair(&self) -> bool {
        self.findings.iter().all(|f| f.weight != Weight::Unfair)
    }
}

/// Findings being collected: the same words about several bodies are one finding.
#[derive(Default)]
struct Findings(BTreeMap<(Weight, String), Vec<String>>);

impl Findings {
    fn add(&mut self, weight: Weight, what: String, body: Option<&BodyFacts>) {
        let bodies = self.0.entry((weight, what)).or_default();
        bodies.extend(body.map(|b| b.name.clone()));
    }
}

/// Judges bodies whose prompts were counted; `counts` has one a body.
pub fn judge(gathered: Gathered, counts: Vec<Counts>) -> Checked {
    let mut found = Findings::default();
    for (name, why) in &gathered.unreadable {
        found.add(Weight::Unfair, format!("{name}: {why}"), None);
    }
    for note in &gathered.notes {
        found.add(Weight::Note, note.clone(), None);
    }
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (body, counted) in gathered.bodies.iter().zip(&counts) {
        shape(body, gathered.path.as_deref(), &mut found);
        sampling(body, &mut found);
        stream(body, &mut found);
        strangers(body, &mut found);
        fits(body, *counted, &gathered.contexts, &mut found);
        if !body.redacted.is_empty() {
            let what = "secrets were redacted: no longer byte for byte what the client sent";
            found.add(Weight::Note, what.to_owned(), Some(body));
        }
        if let Some(other) = seen.insert(&body.sha256, &body.name) {
            let what = format!("the same bytes as {other}: its prompt may come from a cache");
            found.add(Weight::Note, what, Some(body));
        }
    }
    let findings = found.0.into_iter().map(|((weight, what), bodies)| Finding {
        weight,
        what,
        bodies,
    });
    Checked {
        findings: findings.collect(),
        bodies: gathered.bodies.into_iter().zip(counts).collect(),
    }
}

fn shape(body: &BodyFacts, path: Option<&str>, found: &mut Findings) {
    let mut unfair = |what: &str| found.add(Weight::Unfair, what.to_owned(), Some(body));
    match body.route {
        None => unfair(
            "neither `messages` nor `prompt`, or both: servers would not read the same prompt",
        ),
        Some(Route::Text) if path.is_some_and(|p| p.contains("/chat/")) => {
            unfair(
                "a `prompt`, and the study posts it to a chat route: give `path = \"/v1/completions\"`",
            );
        }
        Some(Route::Chat)
            if path.is_some_and(|p| !p.contains("chat") && p.contains("completion")) =>
        {
            unfair(
                "`messages`, and the study posts them to a route for prompts: give `path = \"/v1/chat/completions\"`",
            );
        }
        Some(_) => {}
    }
}

fn sampling(body: &BodyFacts, found: &mut Findings) {
    let greedy = body.temperature == Some(0.0);
    for needed in NEEDED {
        if body.has(needed.name) {
            continue;
        }
        if needed.of_chance && greedy {
            let what = format!(
                "`{}` is missing (changes no answer at temperature 0)",
                needed.name
            );
            found.add(Weight::Note, what, Some(body));
        } else {
            let what = format!("`{}` is missing: {}", needed.name, needed.why);
            found.add(Weight::Unfair, what, Some(body));
        }
    }
    if !greedy && body.value["seed"].as_f64().is_some_and(|seed| seed < 0.0) {
        let what = "a `seed` below 0 is a random one: give a whole number from 0";
        found.add(Weight::Unfair, what.to_owned(), Some(body));
    }
    if body.max_tokens.is_none() {
        let what = format!(
            "no limit of the answer (`{}`): as long as each server likes",
            LIMITS.join("`, `")
        );
        found.add(Weight::Unfair, what, Some(body));
    }
    for (name, off) in OFF {
        let value = body.value.get(*name).and_then(Value::as_f64);
        if value.is_some_and(|v| v != *off) {
            let what =
                format!("`{name}` is on, and only some servers have it: {off} switches it off");
            found.add(Weight::Unfair, what, Some(body));
        }
    }
    for name in ["n", "best_of"] {
        if body
            .value
            .get(name)
            .and_then(Value::as_u64)
            .is_some_and(|n| n > 1)
        {
            let what = format!(
                "`{name}` asks for several answers: not every server gives them, or counts them alike"
            );
            found.add(Weight::Unfair, what, Some(body));
        }
    }
}

fn stream(body: &BodyFacts, found: &mut Findings) {
    match body.stream {
        None => {
            let what = "`stream` is missing: no server streams then, save those that always do; no token's time is seen";
            found.add(Weight::Unfair, what.to_owned(), Some(body));
        }
        Some(true) if !body.include_usage => {
            let what = "a stream without `stream_options.include_usage`: some servers then state no counts, and their \
                        tokens are counted by events";
            found.add(Weight::Unfair, what.to_owned(), Some(body));
        }
        Some(_) => {}
    }
}

fn strangers(body: &BodyFacts, found: &mut Findings) {
    let mut by_readers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, readers) in &body.only_some {
        let names = by_readers.entry(readers.join(", ")).or_default();
        names.push(format!("`{name}`"));
    }
    for (readers, mut names) in by_readers {
        names.sort();
        let names = names.join(", ");
        let what = if readers.is_empty() {
            format!(
                "not known here as fields of any server, so some ignore them and some refuse the body: {names}"
            )
        } else {
            format!("read by {readers} only: {names}")
        };
        found.add(Weight::Note, what, Some(body));
    }
}

fn fits(body: &BodyFacts, counted: Counts, contexts: &[(String, u32)], found: &mut Findings) {
    let needs = counted.tokens + body.max_tokens.unwrap_or(0);
    for (arm, context) in contexts {
        if needs <= u64::from(*context) {
            continue;
        }
        let (weight, by) = match counted.label {
            Counted::Measured => (Weight::Unfair, "counted"),
            Counted::Assumed => (Weight::Note, "ASSUMED at 4 bytes a token"),
        };
        let what = format!(
            "{} prompt tokens ({by}) and {} of the answer do not fit the context of {context} of arm {arm}",
            counted.tokens,
            body.max_tokens.unwrap_or(0)
        );
        found.add(weight, what, Some(body));
    }
}
