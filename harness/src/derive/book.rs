//! `derive`: the one pure function from facts to figures, and what it returns.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Formula;
use super::alone::{Alone, alone};
use super::compare::{Comparison, Rules, compare};
use super::family::{Compared, adjust, margin, settle, settle_rules};
use super::figure::{AnyFigure, Fact, Figure, Published, Unit};
use super::halves::by_arm;
use super::identity::{Identity, identities};
use super::look::Look;
use super::metric::Metric;
use super::noise::{Noise, noise};
use super::request::{LimitFigures, engine_decode_name};
use super::session::{SessionFigures, arm_figures, session_figures};
use super::settings::{SessionSettings, session_settings};
use super::verdict::{Verdict, three_digits, verdict};
use super::version::DERIVE;
use super::worst::bounds;
use crate::archive::Facts;
use crate::stats::minimum_detectable_effect;
use crate::study::{Plan, Protocol, Role, StudyFile};

/// Figures as they are added, for one version of `derive`.
#[derive(Debug)]
pub(super) struct Book {
    figures: Vec<Published>,
    version: u32,
    since: u32,
    later: usize,
}

impl Book {
    /// An empty one: figures that came after `version` are counted, not published.
    pub(super) fn new(version: u32) -> Self {
        Self {
            figures: Vec::new(),
            version,
            since: 1,
            later: 0,
        }
    }

    /// Publishes a figure and hands it back for use as an input.
    pub(super) fn add<L>(&mut self, figure: Figure<L>) -> Figure<L> {
        if self.since <= self.version {
            self.figures.push(figure.published().clone());
        } else {
            self.later += 1;
        }
        figure
    }

    /// The version that is derived: an existing figure's formula may depend on it.
    #[allow(dead_code, reason = "no formula has changed yet")]
    pub(super) fn version(&self) -> u32 {
        self.version
    }

    /// What is added within exists since a version of `derive`: archives of older ones lack it.
    #[allow(dead_code, reason = "a version may add no figure")]
    pub(super) fn since<T>(&mut self, version: u32, add: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.since;
        self.since = before.max(version);
        let added = add(self);
        self.since = before;
        added
    }
}

/// What a version of `derive` gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// Figures, and the words around them.
    pub figures: Figures,
    /// How many figures newer versions add to these.
    pub later: usize,
}

/// `figures.json`: everything published of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    schema: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    derive: Option<u32>,
    study: String,
    arms: Vec<String>,
    verdict: Verdict,
    question: Option<String>,
    #[serde(default)]
    primary: Metric,
    #[serde(default, skip_serializing_if = "Protocol::is_fresh")]
    protocol: Protocol,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    look: Option<Look>,
    comparisons: Vec<Comparison>,
    identity: Vec<Identity>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alone: Vec<Alone>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    settings: Vec<SessionSettings>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    noise: Vec<Noise>,
    #[serde(rename = "figures")]
    all: Vec<Published>,
}

impl Figures {
    /// How many figures there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// `major.minor`.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The version of `derive` that these are of.
    pub fn derive_version(&self) -> u32 {
        self.derive.unwrap_or(1)
    }

    /// The study's name.
    pub fn study(&self) -> &str {
        &self.study
    }

    /// Arms in the study's order; ratios are over the first.
    pub fn arms(&self) -> &[String] {
        &self.arms
    }

    /// What the study asks, in its own words.
    pub fn question(&self) -> Option<&str> {
        self.question.as_deref()
    }

    /// The metric that the study declares to be about.
    pub fn primary(&self) -> Metric {
        self.primary
    }

    /// How the sessions replayed their bodies.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The planned look that the study stands at; absent where none is planned.
    pub fn look(&self) -> Option<&Look> {
        self.look.as_ref()
    }

    /// The compared metrics, in the order of tables.
    pub fn metrics(&self) -> &'static [Metric] {
        Metric::of(&self.protocol)
    }

    /// Levels and metrics, in the order of tables; a level is absent where there are none.
    pub fn rows(&self) -> Vec<(Option<String>, Metric)> {
        let levels = self.protocol.places();
        let row = |level: &Option<String>| {
            let level = level.clone();
            self.metrics().iter().map(move |m| (level.clone(), *m))
        };
        levels.iter().flat_map(row).collect()
    }

    /// The comparisons that the study is about: its primary metric, at its primary level.
    pub fn primary_comparisons(&self) -> impl Iterator<Item = &Comparison> {
        let level = self.protocol.primary_level();
        let all = self.comparisons.iter();
        all.filter(move |c| c.metric == self.primary && c.level == level)
    }

    /// Answers in company next to the same requests alone, by arm; none where a study does not ask.
    pub fn alone(&self) -> &[Alone] {
        &self.alone
    }

    /// What each session's server really did, next to what was expected; none in older archives.
    pub fn settings(&self) -> &[SessionSettings] {
        &self.settings
    }

    /// What else happened on the machine while sessions were measured, by session; none in older
    /// archives.
    pub fn noise(&self) -> &[Noise] {
        &self.noise
    }

    /// Comparisons of hashes that break what the study declares: an arm that did not repeat itself.
    pub fn identity_broken(&self) -> impl Iterator<Item = &Identity> {
        self.identity
            .iter()
            .filter(|i| i.required && i.equal() == Some(false))
    }

    /// What can be said, and what cannot.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Arms against the first arm, by metric.
    pub fn comparisons(&self) -> &[Comparison] {
        &self.comparisons
    }

    /// Equality of tokens and text.
    pub fn identity(&self) -> &[Identity] {
        &self.identity
    }

    /// Every figure, in the order of derivation.
    pub fn all(&self) -> &[Published] {
        &self.all
    }

    /// Leaves what is said around the figures: question, verdict, comparisons, identities.
    pub(crate) fn forget_figures(&mut self) {
        self.all.clear();
    }

    /// A figure by id.
    pub fn get(&self, id: &str) -> Option<&Published> {
        self.all.iter().find(|f| f.id() == id)
    }

    /// A figure's value by id; absent when the figure is, or has none.
    pub fn value(&self, id: &str) -> Option<f64> {
        self.get(id).and_then(Published::value)
    }
}

/// What the plan can see, whatever is measured.
fn power(book: &mut Book, plan: &Plan) {
    let fact = Fact::new("plan.json", "sessions/*/pair", Some(plan.pairs() as f64));
    let pairs = book.add(Figure::reading("study/pairs".into(), Unit::Count, fact));
    book.add(Figure::by(
        "study/detectable_effect".into(),
        Unit::PairDeviations,
        &Formula::DetectableEffect,
        &[&pairs],
    ));
}

/// What a study of this many pairs of sessions can see, in a sentence.
pub fn detectable(pairs: usize) -> String {
    match minimum_detectable_effect(pairs) {
        Some(effect) => format!(
            "With {pairs} pairs of sessions the smallest difference that is detected (80% power, 5% level) is {} times \
             the deviation of the pairs' log-ratios.",
            three_digits(effect)
        ),
        None => format!(
            "With {pairs} pairs of sessions there is no interval, so no difference is detected, whatever its size; 3 \
             quartets give 6 pairs."
        ),
    }
}

/// Derives every figure. Pure: the same facts give the same bits on every machine.
pub fn derive(facts: &Facts) -> Figures {
    derive_as(facts, DERIVE).figures
}

/// Derives the figures of a version of `derive`, for audits of what older programs published.
pub fn derive_as(facts: &Facts, version: u32) -> Derived {
    let mut book = Book::new(version);
    let limits = LimitFigures::of(&mut book, &facts.plan.protocol);
    let apart = by_arm(facts);
    let mut sessions: Vec<SessionFigures<'_>> = Vec::with_capacity(apart.sessions.len());
    for s in &apart.sessions {
        let figures = session_figures(&mut book, &facts.plan, limits.as_ref(), s, sessions.last());
        sessions.push(figures);
    }
    let arms = &facts.plan.arms;
    let mut totals = Vec::new();
    for arm in arms {
        let scored: Vec<&SessionFigures<'_>> = sessions
            .iter()
            .filter(|s| s.planned.arm == *arm && s.planned.role == Role::Scored)
            .collect();
        let kind = apart
            .sessions
            .iter()
            .find(|s| s.planned.arm == *arm)
            .map(|s| s.launch.kind);
        totals.push(arm_figures(
            &mut book,
            &facts.plan,
            arm,
            kind.map(engine_decode_name),
            &scored,
        ));
        if facts.plan.minor() >= 1 {
            bounds(&mut book, &facts.plan, arm, &scored);
        }
    }
    // A study file that does not parse declares nothing; the audit reports it.
    let text = String::from_utf8_lossy(&facts.study_toml);
    let file = StudyFile::parse(Path::new("study.toml"), &text).ok();
    let class = file.as_ref().map(|f| f.identity).unwrap_or_default();
    let primary = file.as_ref().map(|file| file.primary).unwrap_or_default();
    power(&mut book, &facts.plan);
    let look = Look::of(facts);
    let rules = Rules {
        plan: &facts.plan,
        level: look.as_ref().map(|look| look.publish(&mut book)),
    };
    let mut compared: Vec<Compared> = Vec::new();
    let mut with_totals = arms.iter().map(String::as_str).zip(&totals);
    if let Some(base) = with_totals.next() {
        for other in with_totals {
            let (base, other) = ((base.0, base.1.as_slice()), (other.0, other.1.as_slice()));
            compared.extend(compare(&mut book, &rules, &sessions, base, other));
        }
    }
    if facts.plan.minor() >= 1 {
        let level = facts.plan.protocol.primary_level();
        let about = |c: &Comparison| c.metric == primary && c.level == level;
        let (about, others): (Vec<_>, Vec<_>) = compared.iter().partition(|c| about(&c.comparison));
        adjust(&mut book, &others);
        if let Some(margin) = margin(&mut book, file.as_ref()) {
            settle(&mut book, &about, primary, &margin);
        }
        if let Some(file) = &file {
            settle_rules(&mut book, file, &compared);
        }
    }
    let alone = arms
        .iter()
        .filter_map(|arm| alone(&mut book, arm, &apart.sessions, &sessions))
        .collect();
    let expect_cached = file.as_ref().map(|f| f.workload.expect_cached);
    let mut figures = Figures {
        schema: facts.plan.schema.clone(),
        derive: (version > 1).then_some(version),
        study: facts.plan.study.clone(),
        arms: arms.clone(),
        verdict: Verdict::default(),
        look,
        comparisons: compared.into_iter().map(|c| c.comparison).collect(),
        primary,
        protocol: facts.plan.protocol.clone(),
        alone,
        settings: session_settings(facts, file.as_ref()),
        noise: noise(facts, file.as_ref()),
        question: file.and_then(|f| f.question),
        identity: identities(arms, &apart.sessions, class),
        all: std::mem::take(&mut book.figures),
    };
    figures.verdict = verdict(facts, &apart, &figures, expect_cached);
    Derived {
        figures,
        later: book.later,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(version: u32) -> (Vec<String>, usize) {
        let mut book = Book::new(version);
        let figure =
            |id: &str| Figure::reading(id.into(), Unit::Count, Fact::new("f.json", id, Some(1.0)));
        book.add(figure("first"));
        book.since(2, |book| {
            let second = book.add(figure("second"));
            book.since(3, |book| book.add(figure("third")));
            // Within what is newer, nothing is older.
            book.since(1, |book| book.add(figure("second too")));
            assert_eq!(second.published().value(), Some(1.0));
        });
        book.add(figure("last"));
        let ids = book.figures.iter().map(|f| f.id().to_owned()).collect();
        (ids, book.later)
    }

    #[test]
    fn a_version_publishes_what_it_knew_and_counts_the_rest() {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(ids(1), (owned(&["first", "last"]), 3));
        assert_eq!(
            ids(2),
            (owned(&["first", "second", "second too", "last"]), 1)
        );
        let all = owned(&["first", "second", "third", "second too", "last"]);
        assert_eq!(ids(3), (all, 0));
    }
}
