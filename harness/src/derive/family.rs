//! What is said of a comparison beside its interval: its noise, its p among the other metrics, and
//! how many quartets would settle the margin.

use super::book::Book;
use super::figure::{AnyFigure, Assumed, Calculated, Fact, Figure, Unit};
use super::{Comparison, Formula, Metric};
use crate::stats::PairOrder;
use crate::study::StudyFile;

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
    let margin = *file?.margin.as_ref()?.as_ref();
    let fact = Fact::new("study.toml", "margin", Some(margin));
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
    let formula = if primary.higher_is_better() {
        Formula::LogMarginOfRate
    } else {
        Formula::LogMarginOfTime
    };
    let id = "study/log_margin".to_owned();
    let place = book.add(Figure::by(id, Unit::LogRatio, &formula, &[margin]));
    for c in about {
        let Some(noise) = &c.noise else { continue };
        book.add(Figure::by(
            format!("{}/quartets_to_settle", c.comparison.prefix),
            Unit::Count,
            &Formula::QuartetsToSettle,
            &[&c.theta, &noise.deviation, &place],
        ));
    }
}
