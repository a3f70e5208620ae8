//! Arms against each other, by pairs of sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::book::Book;
use super::family::{Compared, Noise};
use super::figure::{AnyFigure, Assumed, Calculated, Figure, Published, Unit};
use super::session::{SessionFigures, Totals};
use super::{Figures, Formula, Metric};
use crate::stats::{MAX_QUARTETS, NoInterval, PairOrder};
use crate::study::{Level, Plan, at_level};

/// One metric of one arm against the study's first arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared.
    pub metric: Metric,
    /// The level at which it is; absent where there are no levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The study's first arm: the denominator.
    pub base: String,
    /// The other arm: the numerator.
    pub other: String,
    /// How many pairs of sessions there are.
    pub pairs: usize,
    /// Figures' common id prefix: `<prefix>/ratio`, `/ratio_low`, `/ratio_high`, `/drift` ...
    pub prefix: String,
    /// Why there is no interval; absent when there is one.
    pub no_interval: Option<String>,
}

impl Comparison {
    /// Id of the arms' own figures divided: what stands beside those figures. It has no interval
    /// and is not the ratio, which is about pairs of sessions.
    pub fn quotient_of_totals(&self) -> String {
        format!("{}/quotient_of_totals", self.prefix)
    }

    /// Id of an arm's own figure of the metric.
    pub fn arm_figure(&self, arm: &str) -> String {
        let scope = at_level(&format!("arm/{arm}"), self.level.as_deref());
        format!("{scope}/{}", self.metric.key())
    }

    /// The ratio of each pair of sessions, in the order of the plan.
    pub fn pair_ratios<'a>(&self, figures: &'a Figures) -> impl Iterator<Item = &'a Published> {
        let arms = format!("{}-over-{}", self.other, self.base);
        let scope = at_level(&arms, self.level.as_deref());
        let end = format!("/{scope}/{}/ratio", self.metric.key());
        let all = figures.all().iter();
        all.filter(move |f| f.id().starts_with("pair/") && f.id().ends_with(&end))
    }
}

/// A metric at a level: what one comparison is about.
#[derive(Clone, Copy)]
struct Subject<'a> {
    metric: Metric,
    nth: usize,
    level: &'a Level,
}

struct Pair<'a> {
    number: u32,
    quartet: Option<u32>,
    order: PairOrder,
    base: &'a SessionFigures<'a>,
    other: &'a SessionFigures<'a>,
}

impl Pair<'_> {
    /// Publishes the pair's log-ratio: of the sessions' own figures where they have one, else the
    /// median over requests.
    fn effect(&self, book: &mut Book, subject: Subject<'_>, scope: &str) -> Figure<Calculated> {
        let metric = subject.metric;
        let id = format!("{scope}/log_ratio");
        if metric.of_session() {
            let own: Vec<&dyn AnyFigure> = [self.base, self.other]
                .into_iter()
                .filter_map(|s| s.metric(subject.nth, metric))
                .collect();
            return book.add(Figure::by(id, Unit::LogRatio, &Formula::LogRatio, &own));
        }
        let mut ratios: Vec<Figure<Calculated>> = Vec::new();
        for a in self.base.at(subject.level) {
            let mut others = self.other.at(subject.level);
            let Some(b) = others.find(|b| b.place == a.place) else {
                continue;
            };
            if let (Some(from), Some(to)) = (a.metric(metric), b.metric(metric)) {
                let id = format!("{scope}/request/{:03}/log_ratio", a.place);
                let inputs = [from, to];
                ratios.push(book.add(Figure::by(id, Unit::LogRatio, &Formula::LogRatio, &inputs)));
            }
        }
        book.add(Figure::by(
            id,
            Unit::LogRatio,
            &Formula::Median,
            &erase(&ratios),
        ))
    }
}

fn pairs_of<'a>(sessions: &'a [SessionFigures<'a>], base: &str, other: &str) -> Vec<Pair<'a>> {
    let mut groups: BTreeMap<u32, Vec<&SessionFigures<'_>>> = BTreeMap::new();
    for session in sessions {
        if let Some(number) = session.planned.pair {
            groups.entry(number).or_default().push(session);
        }
    }
    let find = |group: &[&'a SessionFigures<'a>], arm: &str| {
        group.iter().copied().find(|s| s.planned.arm == arm)
    };
    groups
        .into_iter()
        .filter_map(|(number, group)| {
            let (a, b) = (find(&group, base)?, find(&group, other)?);
            let order = if a.planned.index < b.planned.index {
                PairOrder::Ab
            } else {
                PairOrder::Ba
            };
            Some(Pair {
                number,
                quartet: a.planned.quartet,
                order,
                base: a,
                other: b,
            })
        })
        .collect()
}

/// What shapes every comparison of a study.
pub(super) struct Rules<'a> {
    pub(super) plan: &'a Plan,
    /// The level of the look that the study stands at; 5% if absent.
    pub(super) level: Option<Figure<Assumed>>,
}

/// Publishes pairs, estimate, interval, drift, noise and sign-flip test of `other` over `base`, and
/// the quotient of their totals.
pub(super) fn compare(
    book: &mut Book,
    rules: &Rules<'_>,
    sessions: &[SessionFigures<'_>],
    (base, base_totals): (&str, &[Totals]),
    (other, other_totals): (&str, &[Totals]),
) -> Vec<Compared> {
    let pairs = pairs_of(sessions, base, other);
    let mut comparisons = Vec::new();
    let totals = base_totals.iter().zip(other_totals);
    let levels = rules.plan.levels();
    for ((nth, level), (base_totals, other_totals)) in levels.iter().enumerate().zip(totals) {
        for &metric in Metric::of(&rules.plan.protocol) {
            let subject = Subject { metric, nth, level };
            let compared = compare_metric(book, rules, &pairs, subject, base, other);
            if let (Some(b), Some(a)) = (other_totals.metric(metric), base_totals.metric(metric)) {
                book.add(Figure::by(
                    compared.comparison.quotient_of_totals(),
                    Unit::Ratio,
                    &Formula::Quotient,
                    &[b, a],
                ));
            }
            comparisons.push(compared);
        }
    }
    comparisons
}

fn compare_metric(
    book: &mut Book,
    rules: &Rules<'_>,
    pairs: &[Pair<'_>],
    subject: Subject<'_>,
    base: &str,
    other: &str,
) -> Compared {
    let arms = subject.level.scope(&format!("{other}-over-{base}"));
    let what = format!("{arms}/{}", subject.metric.key());
    let prefix = format!("compare/{what}");
    let mut effects: Vec<Figure<Calculated>> = Vec::new();
    for pair in pairs {
        let scope = format!("pair/{:02}/{what}", pair.number);
        let effect = pair.effect(book, subject, &scope);
        book.add(Figure::by(
            format!("{scope}/ratio"),
            Unit::Ratio,
            &Formula::Exp,
            &[&effect],
        ));
        effects.push(effect);
    }

    let orders: Vec<PairOrder> = pairs.iter().map(|p| p.order).collect();
    let inputs = erase(&effects);
    let [low, high] = match &rules.level {
        None => [
            Formula::PairLow(orders.clone()),
            Formula::PairHigh(orders.clone()),
        ]
        .map(|formula| (formula, inputs.clone())),
        Some(level) => {
            let mut with_level: Vec<&dyn AnyFigure> = vec![level];
            with_level.extend(&inputs);
            [
                Formula::PairLowAt(orders.clone()),
                Formula::PairHighAt(orders.clone()),
            ]
            .map(|formula| (formula, with_level.clone()))
        }
    };
    let mut estimate = |end: &str, formula: Formula, inputs: &[&dyn AnyFigure]| {
        let id = format!("{prefix}/log_ratio{end}");
        let log = book.add(Figure::by(id, Unit::LogRatio, &formula, inputs));
        let id = format!("{prefix}/ratio{end}");
        book.add(Figure::by(id, Unit::Ratio, &Formula::Exp, &[&log]));
        log
    };
    let theta = estimate("", Formula::PairEffect(orders.clone()), &inputs);
    let ends = [("_low", low), ("_high", high)]
        .map(|(end, (formula, inputs))| estimate(end, formula, &inputs));
    let known = |f: &Figure<Calculated>| f.published().value().is_some();
    let has_interval = known(&theta) && ends.iter().all(known);
    let drift = Formula::PairDrift(orders.clone());
    let drift = book.add(Figure::by(
        format!("{prefix}/drift_log"),
        Unit::LogRatio,
        &drift,
        &inputs,
    ));
    book.add(Figure::by(
        format!("{prefix}/drift"),
        Unit::Ratio,
        &Formula::Exp,
        &[&drift],
    ));
    let noise = (rules.plan.minor() >= 1).then(|| Noise::publish(book, &prefix, &orders, &inputs));
    quartets(book, &prefix, pairs, &effects);
    let comparison = Comparison {
        metric: subject.metric,
        level: subject.level.name.clone(),
        base: base.into(),
        other: other.into(),
        pairs: pairs.len(),
        prefix,
        no_interval: (!has_interval).then(|| reason(&orders, &effects)),
    };
    Compared {
        comparison,
        theta,
        noise,
    }
}

/// The sign-flip test over quartets: the mean of each quartet's pairs.
fn quartets(book: &mut Book, prefix: &str, pairs: &[Pair<'_>], effects: &[Figure<Calculated>]) {
    let mut groups: BTreeMap<u32, Vec<&dyn AnyFigure>> = BTreeMap::new();
    for (pair, effect) in pairs.iter().zip(effects) {
        if let Some(quartet) = pair.quartet {
            groups.entry(quartet).or_default().push(effect);
        }
    }
    if groups.is_empty() || groups.len() > MAX_QUARTETS {
        return;
    }
    let means: Vec<Figure<Calculated>> = groups
        .into_iter()
        .map(|(quartet, inputs)| {
            let id = format!("{prefix}/quartet/{quartet:02}/log_ratio");
            book.add(Figure::by(id, Unit::LogRatio, &Formula::Mean, &inputs))
        })
        .collect();
    let inputs = erase(&means);
    for (name, formula) in [
        ("sign_flip_p", Formula::SignFlipP),
        ("sign_flip_smallest_p", Formula::SignFlipSmallestP),
    ] {
        book.add(Figure::by(
            format!("{prefix}/{name}"),
            Unit::Probability,
            &formula,
            &inputs,
        ));
    }
}

fn erase(figures: &[Figure<Calculated>]) -> Vec<&dyn AnyFigure> {
    figures.iter().map(|f| f as &dyn AnyFigure).collect()
}

fn reason(orders: &[PairOrder], effects: &[Figure<Calculated>]) -> String {
    let missing = effects
        .iter()
        .filter(|e| e.published().value().is_none())
        .count();
    if missing > 0 {
        return format!(
            "{missing} of {} pairs lack this metric in at least one request",
            effects.len()
        );
    }
    if effects.len() < 3 {
        return NoInterval::TooFewPairs(effects.len()).to_string();
    }
    if orders.windows(2).all(|w| w[0] == w[1]) {
        return NoInterval::OneOrder.to_string();
    }
    "the estimate is not defined for these pairs".into()
}
