//! The demands of a study, one by one, and what they come to together.

use serde::Serialize;

use crate::derive::{Comparison, Figures, Metric, settling};
use crate::stats::{Decision, Interval, against_margin, within_margin};
use crate::study::{Direction, Rule};

/// What a gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything that is demanded holds.
    Pass,
    /// Nothing is demanded.
    NoRules,
    /// Slower (or, where the study says so, different) by more than a margin.
    Regression,
    /// An interval lies across its margin, or there is none.
    Inconclusive,
    /// Tokens differ that the study declares equal.
    Identity,
    /// An arm does not show the primary metric.
    NothingMeasured,
}

impl Outcome {
    /// In capitals, as it heads what is printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::NoRules => "NO DEMANDS",
            Self::Regression => "REGRESSION",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Identity => "TOKENS DIFFER",
            Self::NothingMeasured => "NOTHING MEASURED",
        }
    }
}

/// One demand on one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What is demanded.
    pub rule: Rule,
    /// The denominator.
    pub base: String,
    /// The arm that is held to it.
    pub other: String,
    /// Id of the ratio's figure.
    pub figure: String,
    /// The ratio, as it was published.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
    /// What the interval says.
    pub decision: Decision,
    /// Why it does not hold, or is not settled.
    pub why: Option<String>,
}

/// A study's figures, held to what the study demands.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What it comes to.
    pub outcome: Outcome,
    /// Why it is not a pass.
    pub reason: Option<String>,
    /// Each demand on each arm, in the order of the study file.
    pub rules: Vec<Judged>,
    /// Hashes that the study declares equal: what was compared, and whether it held.
    pub identity: Vec<(String, bool)>,
}

/// Holds the figures of a study to its rules. Tokens come before speed: an arm that answers
/// something else is not faster.
pub fn judge(rules: &[Rule], figures: &Figures) -> Judgement {
    let judged: Vec<Judged> = rules
        .iter()
        .flat_map(|rule| each_arm(rule, figures))
        .collect();
    let (outcome, reason) = together(rules, &judged, figures);
    Judgement {
        outcome,
        reason,
        rules: judged,
        identity: identity(figures),
    }
}

fn together(rules: &[Rule], judged: &[Judged], figures: &Figures) -> (Outcome, Option<String>) {
    let primary = figures.primary();
    let unmeasured = |arm: &&String| !shows(figures, arm, primary);
    if let Some(arm) = figures.arms().iter().find(unmeasured) {
        let metric = primary.title().to_lowercase();
        let why = format!(
            "nothing was measured: no answer of {arm} shows a {metric}, which the study is about"
        );
        return (Outcome::NothingMeasured, Some(why));
    }
    if let Some(reason) = broken_identity(figures) {
        return (Outcome::Identity, Some(reason));
    }
    if rules.is_empty() {
        return (Outcome::NoRules, None);
    }
    let first = |decision| judged.iter().find(|j| j.decision == decision);
    if let Some(found) = first(Decision::Regression) {
        return (Outcome::Regression, found.why.clone());
    }
    if let Some(found) = first(Decision::Inconclusive) {
        return (Outcome::Inconclusive, found.why.clone());
    }
    (Outcome::Pass, None)
}

/// Whether an arm has the metric: over all its scored requests, or at least for one of them.
fn shows(figures: &Figures, arm: &str, metric: Metric) -> bool {
    let (arm, key) = (format!("arm/{arm}/"), metric.key());
    let of_arm = figures.all().iter().filter(|f| f.value().is_some());
    of_arm
        .filter_map(|f| f.id().strip_prefix(&arm))
        .any(|id| id.rsplit('/').next() == Some(key))
}

/// The first comparison of tokens that breaks what the study declares.
fn broken_identity(figures: &Figures) -> Option<String> {
    let differs = figures.identity_broken().next()?;
    let between = if differs.arms.len() == 1 {
        "between its sessions"
    } else {
        "between them"
    };
    Some(format!(
        "{}: {} differ {between} in {} of {} requests, and the study declares them equal",
        differs.arms.join(", "),
        differs.kind.title(),
        differs.differing.len(),
        differs.compared,
    ))
}

fn identity(figures: &Figures) -> Vec<(String, bool)> {
    let all = figures.identity().iter();
    let required = all.filter(|i| i.required);
    required
        .filter_map(|i| {
            let arms = i.arms.join(", ");
            let what = format!("{arms}: {} of {} requests", i.kind.title(), i.compared);
            Some((what, i.equal()?))
        })
        .collect()
}

fn each_arm<'a>(rule: &'a Rule, figures: &'a Figures) -> impl Iterator<Item = Judged> + 'a {
    let all = figures.comparisons().iter();
    let about = all.filter(|c| c.metric == rule.metric && c.level == rule.level);
    about.map(|c| one(rule, figures, c))
}

fn one(rule: &Rule, figures: &Figures, c: &Comparison) -> Judged {
    let figure = format!("{}/ratio", c.prefix);
    let interval = figures.interval(c);
    let (decision, why) = match interval {
        None => {
            let why = c.no_interval.as_deref().unwrap_or("it has no interval");
            let why = format!("{} over {}: {why}", c.other, c.base);
            (Decision::Inconclusive, Some(why))
        }
        Some(interval) => {
            let decision = decide(rule, interval);
            (decision, why(rule, figures, c, interval, decision))
        }
    };
    Judged {
        rule: rule.clone(),
        base: c.base.clone(),
        other: c.other.clone(),
        ratio: figures.value(&figure),
        figure,
        interval,
        decision,
        why,
    }
}

fn decide(rule: &Rule, interval: Interval) -> Decision {
    match rule.direction {
        Direction::Slower => against_margin(interval, rule.margin, rule.metric.higher_is_better()),
        Direction::Either => within_margin(interval, rule.margin),
    }
}

fn why(
    rule: &Rule,
    figures: &Figures,
    c: &Comparison,
    interval: Interval,
    decision: Decision,
) -> Option<String> {
    let (base, other, margin) = (&c.base, &c.other, rule.margin);
    match decision {
        Decision::Pass => None,
        Decision::Regression => {
            let how = match rule.direction {
                Direction::Slower => format!("is slower than {base}"),
                Direction::Either => format!("differs from {base}"),
            };
            let metric = rule.metric.title().to_lowercase();
            Some(format!(
                "{other} {how} by more than the margin of {margin} ({metric})"
            ))
        }
        Decision::Inconclusive => {
            let own = figures.get(&rule.quartets_to_settle(c));
            let needed = match rule.direction {
                // The study's own margin stands with its comparison.
                Direction::Slower => {
                    own.or_else(|| figures.get(&format!("{}/quartets_to_settle", c.prefix)))
                }
                Direction::Either => None,
            };
            Some(format!(
                "{other} over {base}: the interval {:.4} to {:.4} does not settle a margin of {margin}; {}; start a new \
                 study, for adding sessions until it settles is not a test",
                interval.low,
                interval.high,
                settling(needed)
            ))
        }
    }
}
