//! What a study can see before its first session.

use super::{Metric, detectable, three_digits};
use crate::stats::{ALPHA, detectable_at, log_margin, quartets_to_settle};
use crate::study::{Looks, Plan};

/// How much pairs of sessions of one arm differ: standard deviation of their log-ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// In log units.
    pub log_deviation: f64,
    /// Where it comes from, in words: `assumed by the study file`.
    pub source: String,
}

/// What a study can see.
#[derive(Clone, Debug, PartialEq)]
pub struct Foresight {
    /// In words.
    pub sentence: String,
    /// The smallest difference that is detected 4 times in 5, in log units; absent where it is not
    /// known how much pairs differ, or nothing is ever detected.
    pub log_effect: Option<f64>,
    /// Why the study's margin is below what it can see, and what would help; absent where it is not,
    /// or where neither is known.
    pub margin_unseen: Option<String>,
}

/// What the pairs of a plan can see of a metric, and whether that is enough for a margin.
pub fn foresee(
    plan: &Plan,
    metric: Metric,
    margin: Option<f64>,
    spread: Option<&Spread>,
) -> Foresight {
    let level = plan.looks.as_ref().map_or(ALPHA, Looks::last_level);
    foresee_pairs(plan.pairs(), level, metric, margin, spread)
}

/// What so many pairs can see of a metric at a two-sided level.
pub fn foresee_pairs(
    pairs: usize,
    level: f64,
    metric: Metric,
    margin: Option<f64>,
    spread: Option<&Spread>,
) -> Foresight {
    let seen = spread.and_then(|s| Some((s, detectable_at(pairs, level)? * s.log_deviation)));
    let Some((spread, log_effect)) = seen else {
        let unknown = match spread {
            Some(_) => "",
            None => {
                " How much pairs differ here is not known: `palindrome aa` measures it, `assumed_spread` in the study \
                 file assumes it."
            }
        };
        return Foresight {
            sentence: detectable(pairs) + unknown,
            log_effect: None,
            margin_unseen: None,
        };
    };
    let sentence = format!(
        "With {pairs} pairs of sessions that differ by {} ({}), the smallest difference in {} that is detected 4 times \
         in 5 is {}.",
        percent(spread.log_deviation),
        spread.source,
        metric.title().to_lowercase(),
        percent(log_effect)
    );
    let margin_unseen = margin.and_then(|margin| {
        let distance = log_margin(margin, metric.higher_is_better()).abs();
        if log_effect <= distance {
            return None;
        }
        let help = match quartets_to_settle(distance, spread.log_deviation) {
            Some(quartets) => format!("{quartets} quartets would see it"),
            None => "not even 1000 quartets would see it: quieten the machine, or widen the margin"
                .into(),
        };
        Some(format!(
            "the margin of {} is below the {} that {pairs} pairs of sessions can see here; {help}",
            percent_of(margin),
            percent(log_effect)
        ))
    });
    Foresight {
        sentence,
        log_effect: Some(log_effect),
        margin_unseen,
    }
}

/// A log-ratio as percent: 0.01 is 1.01%.
pub fn percent(log: f64) -> String {
    percent_of(libm::expm1(log))
}

fn percent_of(share: f64) -> String {
    format!("{}%", three_digits(share * 100.0))
}
