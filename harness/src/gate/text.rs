//! The judgement on one screen.

use std::fmt::Write as _;

use super::{Judged, Judgement, Outcome};
use crate::derive::{Figures, three_digits};
use crate::report::{aligned, in_words, value_and_label};
use crate::stats::Decision;
use crate::study::{Direction, Rule};

/// Most demands, and most warnings, that are shown; the rest is counted.
const ROWS: usize = 10;
const WARNINGS: usize = 4;

/// Where a judgement comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The archive, as it was named.
    pub archive: String,
    /// The machine and when, for people.
    pub measured: String,
    /// What a reader must know of how the arms came about.
    pub notes: Vec<String>,
}

/// Outcome, warnings, demands, tokens, why, and what to do: plain text of at most 30 lines. Ends with
/// a newline.
pub fn explain(judgement: &Judgement, figures: &Figures, place: &Place) -> String {
    let mut out = format!(
        "{}: {}\narchive   {}\nmeasured  {}\n",
        judgement.outcome.word(),
        figures.study(),
        place.archive,
        place.measured
    );
    for note in &place.notes {
        let _ = writeln!(out, "note      {note}");
    }
    let warnings = &figures.verdict().warnings;
    for warning in warnings.iter().take(WARNINGS) {
        let _ = writeln!(out, "! {warning}");
    }
    out.push_str(&more(warnings.len(), WARNINGS, "warning"));
    if !judgement.rules.is_empty() {
        out.push('\n');
        out.push_str(&aligned(&table(judgement, figures)));
        out.push_str(&more(judgement.rules.len(), ROWS, "demand"));
        if judgement.rules.len() > 1 {
            out.push_str(&together(judgement.rules.len()));
        }
    }
    out.push_str(&tokens(&judgement.identity));
    if let Some(reason) = &judgement.reason {
        let _ = write!(out, "\nWhy: {reason}.\n");
    }
    if let Some(next) = next(judgement.outcome, &place.archive) {
        let _ = writeln!(out, "Next: {next}.");
    }
    out
}

/// Hashes that the study declares equal: those that differ, and how many do not.
fn tokens(identity: &[(String, bool)]) -> String {
    let (held, broken): (Vec<_>, Vec<_>) = identity.iter().partition(|(_, held)| *held);
    let mut out = String::new();
    for (what, _) in broken {
        let _ = writeln!(out, "NOT EQUAL, and declared so: {what}");
    }
    if !held.is_empty() {
        let n = held.len();
        let _ = writeln!(
            out,
            "Tokens declared equal are, in {n} comparison(s) of hashes"
        );
    }
    out
}

/// What several demands do to the chance of an error.
fn together(rules: usize) -> String {
    format!(
        "Each demand is judged by its own interval: that one of {rules} errs is up to {rules} times as likely as of one.\n"
    )
}

fn more(all: usize, shown: usize, what: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        n => format!("and {n} more {what}(s)\n"),
    }
}

fn table(judgement: &Judgement, figures: &Figures) -> Vec<Vec<String>> {
    let head = ["Demand", "ratio", &figures.interval_title(), "passes", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(judgement.rules.iter().take(ROWS).map(|j| row(j, figures)));
    rows
}

fn row(j: &Judged, figures: &Figures) -> Vec<String> {
    vec![
        title(j),
        value_and_label(figures.get(&j.figure)),
        range(j),
        passes(&j.rule),
        word(j.decision).to_owned(),
    ]
}

/// `new / old: decode rate`.
pub(super) fn title(j: &Judged) -> String {
    let metric = in_words(j.rule.metric, j.rule.level.as_deref());
    format!("{} / {}: {metric}", j.other, j.base)
}

/// The interval, or that there is none.
pub(super) fn range(j: &Judged) -> String {
    match j.interval {
        Some(i) => format!("{} to {} C", three_digits(i.low), three_digits(i.high)),
        None => "none".to_owned(),
    }
}

/// Where the ratio must lie.
pub(super) fn passes(rule: &Rule) -> String {
    let (least, most) = (
        three_digits(1.0 - rule.margin),
        three_digits(1.0 + rule.margin),
    );
    match rule.direction {
        Direction::Either => format!("{least} to {most}"),
        Direction::Slower if rule.metric.higher_is_better() => format!("above {least}"),
        Direction::Slower => format!("below {most}"),
    }
}

/// A decision in a word.
pub(super) fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Pass => "pass",
        Decision::Regression => "REGRESSION",
        Decision::Inconclusive => "inconclusive",
    }
}

fn next(outcome: Outcome, archive: &str) -> Option<String> {
    match outcome {
        Outcome::Pass | Outcome::Inconclusive => None,
        Outcome::NoRules => Some(
            "give the study a `margin`, or `[gate]` tables: what passes is declared before the first session".to_owned(),
        ),
        Outcome::Regression | Outcome::Identity | Outcome::NothingMeasured => {
            Some(format!("palindrome report {archive} shows every session and request"))
        }
    }
}
