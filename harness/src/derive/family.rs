//! What is said of a comparison beside its interval: its noise, its p among the other metrics, and
//! how many quartets would settle the margin.

use super::book::Book;
use super::figure::{AnyFigure, Assumed, Calculated, Fact, Figure, Unit};
use super::{Comparison, Formula, Metric};
use crate::stats::PairOrder;
use crate::study::{Direction, Rule, StudyFile};

/// A comparison with the figures that more is computed from.
pub(super) struct Compared {
    pub(super) comparison: Comparison,
    pub(super) theta: Figure<Calculated>,
    /// Absent before archive format 1.1.
    pub(super) noise: Option<Noise>,
}

/// Deviation of the pairs, and p of no difference.
pub(super) struct Noise {
    deviation: Figure<Calculated>,
    p: Figure<Calculated>,
}

impl Noise {
    /// Publishes both.
    pub(super) fn publish(
        book: &mut Book,
        prefix: &str,
        orders: &[PairOrder],
        effects: &[&dyn AnyFigure],
    ) -> Self {
        let mut add = |name: &str, unit, formula: Formula| {
            book.add(Figure::by(
                format!("{prefix}/{name}"),
                unit,
                &formula,
                effects,
            ))
        };
        Self {
            deviation: add(
                "pair_deviation",
                Unit::LogRatio,
                Formula::PairDeviation(orders.to_vec()),
            ),
            p: add("p", Unit::Probability, Formula::PairP(orders.to_vec())),
        }
    }
}

/// The margin as declared; absent where the study has none.
pub(super) fn margin(book: &mut Book, file: Option<&StudyFile>) -> Option<Figure<Assumed>> {
    let rule = file?.primary_rule()?;
    let fact = Fact::new("study.toml", &rule.declared, Some(rule.margin));
    Some(book.add(Figure::declared("study/margin".into(), Unit::Ratio, fact)))
}

/// Publishes Holm-adjusted p of everything that is compared beside what the study is about: one
/// family over metrics, arms and levels of load.
pub(super) fn adjust(book: &mut Book, others: &[&Compared]) {
    let family: Vec<(&str, &Figure<Calculated>)> = others
        .iter()
        .filter_map(|c| Some((c.comparison.prefix.as_str(), &c.noise.as_ref()?.p)))
        // A metric that was not measured is not in the family.
        .filter(|(_, p)| p.published().value().is_some())
        .collect();
    let inputs: Vec<&dyn AnyFigure> = family.iter().map(|(_, p)| *p as &dyn AnyFigure).collect();
    for (place, (prefix, _)) in family.iter().enumerate() {
        book.add(Figure::by(
            format!("{prefix}/p_holm"),
            Unit::Probability,
            &Formula::Holm(place),
            &inputs,
        ));
    }
}

/// Publishes how many quartets would settle the margin of what the study is `about`.
pub(super) fn settle(
    book: &mut Book,
    about: &[&Compared],
    primary: Metric,
    margin: &Figure<Assumed>,
) {
    let each = |c: &Comparison| format!("{}/quartets_to_settle", c.prefix);
    settle_as(book, about, primary, margin, "study/log_margin", &each);
}

/// Publishes the margins that a gate has beside the study's own, and how many quartets would settle
/// each (of those against a slowdown: what would settle one of either sign is not computed).
pub(super) fn settle_rules(book: &mut Book, file: &StudyFile, compared: &[Compared]) {
    let own = file.primary_rule();
    for rule in &file.rules {
        if own == Some(rule) {
            continue;
        }
        let fact = Fact::new("study.toml", &rule.declared, Some(rule.margin));
        let id = rule.declared.clone();
        let margin = book.add(Figure::declared(id, Unit::Ratio, fact));
        if rule.direction == Direction::Either {
            continue;
        }
        let is_about =
            |c: &&Compared| c.comparison.metric == rule.metric && c.comparison.level == rule.level;
        let about: Vec<&Compared> = compared.iter().filter(is_about).collect();
        let scope = rule.declared.trim_end_matches("/margin");
        let log_margin = format!("{scope}/log_margin");
        let each = |c: &Comparison| rule.quartets_to_settle(c);
        settle_as(book, &about, rule.metric, &margin, &log_margin, &each);
    }
}

impl Rule {
    /// Id of the figure that says how many quartets would settle it in a comparison.
    pub fn quartets_to_settle(&self, c: &Comparison) -> String {
        match self.declared.strip_suffix("/margin") {
            Some(scope) => format!("{scope}/{}-over-{}/quartets_to_settle", c.other, c.base),
            None => format!("{}/quartets_to_settle", c.prefix),
        }
    }
}

fn settle_as(
    book: &mut Book,
    about: &[&Compared],
    metric: Metric,
    margin: &Figure<Assumed>,
    log_margin: &str,
    each: &dyn Fn(&Comparison) -> String,
) {
    let formula = if metric.higher_is_better() {
        Formula::LogMarginOfRate
    } else {
        Formula::LogMarginOfTime
    };
    let id = log_margin.to_owned();
    let place = book.add(Figure::by(id, Unit::LogRatio, &formula, &[margin]));
    for c in about {
        let Some(noise) = &c.noise else { continue };
        book.add(Figure::by(
            each(&c.comparison),
            Unit::Count,
            &Formula::QuartetsToSettle,
            &[&c.theta, &noise.deviation, &place],
        ));
    }
}
