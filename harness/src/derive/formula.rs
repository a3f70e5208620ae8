//! The named formulas: everything CALCULATED comes out of one of these.

use crate::stats::{
    ALPHA, Interval, PairEffect, PairEstimate, PairOrder, PerSession, holm, least_observations,
    log_margin, median, minimum_detectable_effect, pair_order_estimate_at, percentile,
    percentile_upper_bound, quartets_to_settle, sign_flip, weighted_rate,
};

/// A formula over inputs in a fixed order. What is not an input but shapes it (the order of the
/// pairs) is part of it and of its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// First minus second.
    Difference,
    /// The input minus one.
    AfterFirst,
    /// Sum of all.
    Sum,
    /// First over second.
    Quotient,
    /// First over second, times 1000: a rate from a time in milliseconds.
    PerMillisecond,
    /// First half summed over second half summed: tokens, then seconds.
    SumOverSum,
    /// Median.
    Median,
    /// Mean.
    Mean,
    /// Largest.
    Largest,
    /// Percentile by nearest rank, where there are observations for it.
    Percentile(u8),
    /// Percentile by nearest rank over what so many requests put together.
    PooledPercentile(u8, usize),
    /// 1 where each first of two inputs is at most the second, else 0.
    Within,
    /// Power over time: pairs of a time in nanoseconds and a power in microwatts, in order.
    PowerOverTime,
    /// ln(second / first).
    LogRatio,
    /// exp.
    Exp,
    /// theta of the pair-plus-order fit.
    PairEffect(Vec<PairOrder>),
    /// beta of the pair-plus-order fit.
    PairDrift(Vec<PairOrder>),
    /// Lower end of theta's 95% t interval.
    PairLow(Vec<PairOrder>),
    /// Upper end of theta's 95% t interval.
    PairHigh(Vec<PairOrder>),
    /// Lower end of theta's t interval at the two-sided level that is the first input.
    PairLowAt(Vec<PairOrder>),
    /// Upper end of the same.
    PairHighAt(Vec<PairOrder>),
    /// Estimated standard deviation of a pair's log-ratio around the fit.
    PairDeviation(Vec<PairOrder>),
    /// Two-sided p of theta = 0 by the same t.
    PairP(Vec<PairOrder>),
    /// Holm's adjustment of the input at this place (from 0) among all inputs.
    Holm(usize),
    /// Quartets that settle a margin: from theta, the pairs' deviation and the margin's place.
    QuartetsToSettle,
    /// Where a margin (a share) lies in log units of a rate's ratio.
    LogMarginOfRate,
    /// Where a margin (a share) lies in log units of a time's ratio.
    LogMarginOfTime,
    /// Upper 95% bound of a percentile, from one value a session.
    PercentileBound(u8),
    /// p of the sign-flip test over quartet effects.
    SignFlipP,
    /// Smallest effect seen with 80% power at a two-sided 5%, from the number of pairs.
    DetectableEffect,
    /// Smallest p that the sign-flip test can give with this many quartets.
    SignFlipSmallestP,
}

impl Formula {
    /// The id in `figures.json`.
    pub fn id(&self) -> String {
        let with = |name: &str, orders: &[PairOrder]| {
            let list: Vec<&str> = orders
                .iter()
                .map(|o| if *o == PairOrder::Ab { "AB" } else { "BA" })
                .collect();
            format!("{name}({})", list.join(","))
        };
        match self {
            Self::Difference => "difference".into(),
            Self::AfterFirst => "tokens-after-first".into(),
            Self::Sum => "sum".into(),
            Self::Quotient => "quotient".into(),
            Self::PerMillisecond => "per-millisecond-times-1000".into(),
            Self::SumOverSum => "sum-over-sum".into(),
            Self::Median => "median".into(),
            Self::Mean => "mean".into(),
            Self::Largest => "largest".into(),
            Self::Percentile(percent) => format!("percentile({percent})"),
            Self::PooledPercentile(percent, requests) => {
                format!("pooled-percentile({percent};{requests})")
            }
            Self::Within => "within".into(),
            Self::PowerOverTime => "power-over-time".into(),
            Self::LogRatio => "log-ratio".into(),
            Self::Exp => "exp".into(),
            Self::PairEffect(orders) => with("pair-order-theta", orders),
            Self::PairDrift(orders) => with("pair-order-beta", orders),
            Self::PairLow(orders) => with("pair-order-t95-low", orders),
            Self::PairHigh(orders) => with("pair-order-t95-high", orders),
            Self::PairLowAt(orders) => with("pair-order-t-low", orders),
            Self::PairHighAt(orders) => with("pair-order-t-high", orders),
            Self::PairDeviation(orders) => with("pair-order-deviation", orders),
            Self::PairP(orders) => with("pair-order-p", orders),
            Self::Holm(place) => format!("holm({place})"),
            Self::QuartetsToSettle => "quartets-to-settle".into(),
            Self::LogMarginOfRate => "log-margin-of-rate".into(),
            Self::LogMarginOfTime => "log-margin-of-time".into(),
            Self::PercentileBound(percent) => format!("percentile-bound({percent})"),
            Self::SignFlipP => "sign-flip-p".into(),
            Self::DetectableEffect => "detectable-effect".into(),
            Self::SignFlipSmallestP => "sign-flip-smallest-p".into(),
        }
    }

    /// What it says in words, for the methods section.
    pub fn explained() -> &'static [(&'static str, &'static str)] {
        &[
            ("reading", "a counter or clock as it was read"),
            (
                "assumed",
                "not said by the server: the first event of a stream is taken to be one token",
            ),
            (
                "counted",
                "how many of the recorded facts are there, or, of hashes, are equal two by two",
            ),
            ("interval", "second clock reading minus first"),
            (
                "counter-rise",
                "how much a counter rose from the last sample before the first request to the first one after the last \
                 answer; at its range it starts again from 0",
            ),
            ("difference", "first minus second"),
            (
                "tokens-after-first",
                "the input minus one: palindrome-engine's predicted_ms runs from its first token to its last, so of \
                 predicted_n tokens one lies outside it (engine_decode_rate_n_minus_1); llama.cpp's own rate is \
                 predicted_n over predicted_ms (engine_decode_rate_n)",
            ),
            ("sum", "sum of all"),
            ("quotient", "first over second"),
            (
                "per-millisecond-times-1000",
                "first over second, times 1000",
            ),
            (
                "sum-over-sum",
                "sum of the first half of the inputs over the sum of the second half",
            ),
            (
                "median",
                "median; the mean of the middle two for an even count",
            ),
            ("mean", "arithmetic mean"),
            ("largest", "largest"),
            (
                "percentile",
                "the least value that this share of the inputs does not exceed; none for fewer than 29 inputs (90), 59 \
                 (95), 299 (99), below which the largest is no upper 95% bound of it. Requests of one session are not \
                 independent, so it describes them and has no interval",
            ),
            (
                "pooled-percentile",
                "the same over all gaps between events with tokens of so many requests; as many requests are needed as \
                 for a percentile of requests, because the gaps of one request are not independent",
            ),
            (
                "within",
                "1 where each time is at most the limit that stands after it, else 0; a request of one token has no time \
                 per output token, and no limit on it",
            ),
            (
                "power-over-time",
                "power between two samples taken as the mean of both, times the time between them, added up",
            ),
            ("log-ratio", "ln(second / first)"),
            ("exp", "e to the power of the input"),
            (
                "pair-order-theta",
                "theta of d_k = theta + beta s_k by least squares over pairs; s_k = +1 for AB, -1 for BA",
            ),
            ("pair-order-beta", "beta of the same fit: the drift"),
            (
                "pair-order-t95-low",
                "lower end of theta's 95% t interval, n - 2 degrees of freedom",
            ),
            ("pair-order-t95-high", "upper end of the same"),
            (
                "pair-order-t-low",
                "lower end of theta's t interval at the level that is the first input, that of a planned look",
            ),
            ("pair-order-t-high", "upper end of the same"),
            (
                "pair-order-deviation",
                "standard deviation of the pairs' log-ratios around the fit, n - 2 degrees of freedom",
            ),
            (
                "pair-order-p",
                "two-sided p of theta = 0 by the t of the same fit",
            ),
            (
                "holm",
                "the input at that place (from 0), adjusted by Holm's step-down rule for how many inputs there are",
            ),
            (
                "quartets-to-settle",
                "the quartets with which the 95% interval excludes the margin 4 times in 5, were effect and deviation as \
                 seen here (noncentral t); none beyond 1000",
            ),
            ("log-margin-of-rate", "ln(1 - margin)"),
            ("log-margin-of-time", "ln(1 + margin)"),
            (
                "percentile-bound",
                "upper 95% bound of that percentile over sessions, by order statistics; none below 29 sessions for 90, \
                 59 for 95, 299 for 99",
            ),
            (
                "declared",
                "taken from the study's files, where it was written before the first session",
            ),
            (
                "sign-flip-p",
                "exact two-sided sign-flip test over quartets",
            ),
            (
                "detectable-effect",
                "the smallest effect that this many pairs of sessions detect with 80% power at a two-sided 5% level, in \
                 deviations of the pairs' log-ratios; none below 3 pairs",
            ),
            (
                "sign-flip-smallest-p",
                "the smallest p that this many quartets can give",
            ),
        ]
    }

    /// Applies it; absent when it is not defined for these inputs.
    pub(super) fn apply(&self, v: &[f64]) -> Option<f64> {
        match (self, v) {
            (Self::Difference, [a, b]) => Some(a - b),
            (Self::AfterFirst, [n]) => (*n >= 1.0).then(|| n - 1.0),
            (Self::Sum, [_, ..]) => Some(v.iter().sum()),
            (Self::Quotient, [a, b]) => (*b > 0.0).then(|| a / b),
            (Self::PerMillisecond, [a, b]) => (*b > 0.0).then(|| a / b * 1000.0),
            (Self::SumOverSum, _) if v.len().is_multiple_of(2) => {
                let (amounts, seconds) = v.split_at(v.len() / 2);
                weighted_rate(amounts, seconds)
            }
            (Self::Median, _) => median(v),
            (Self::Mean, [_, ..]) => Some(v.iter().sum::<f64>() / v.len() as f64),
            (Self::Largest, [_, ..]) => Some(v.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            (Self::Percentile(percent), _) => percentile(v, *percent),
            (Self::PooledPercentile(percent, requests), _) => (*requests
                >= least_observations(*percent))
            .then(|| percentile(v, *percent))
            .flatten(),
            (Self::Within, _) if v.len().is_multiple_of(2) => {
                let met = v.chunks(2).all(|pair| pair[0] <= pair[1]);
                Some(f64::from(u8::from(met)))
            }
            (Self::PowerOverTime, _) if v.len().is_multiple_of(2) && v.len() >= 4 => {
                let readings: Vec<(f64, f64)> = v.chunks(2).map(|r| (r[0], r[1])).collect();
                let joules = readings.windows(2).map(|pair| {
                    let ((t0, p0), (t1, p1)) = (pair[0], pair[1]);
                    (t1 - t0) / 1e9 * f64::midpoint(p0, p1) / 1e6
                });
                Some(joules.sum())
            }
            (Self::LogRatio, [a, b]) => (*a > 0.0 && *b > 0.0).then(|| libm::log(b / a)),
            (Self::Exp, [x]) => Some(libm::exp(*x)),
            (Self::PairEffect(orders), _) => fit(orders, v).map(|e| e.theta),
            (Self::PairDrift(orders), _) => fit(orders, v).map(|e| e.beta),
            (Self::PairLow(orders), _) => interval(orders, v).map(|i| i.low),
            (Self::PairHigh(orders), _) => interval(orders, v).map(|i| i.high),
            (Self::PairLowAt(orders), [level, effects @ ..]) => {
                Some(fit_at(orders, effects, *level)?.interval.ok()?.low)
            }
            (Self::PairHighAt(orders), [level, effects @ ..]) => {
                Some(fit_at(orders, effects, *level)?.interval.ok()?.high)
            }
            (Self::PairDeviation(orders), _) => Some(fit(orders, v)?.noise.ok()?.deviation),
            (Self::PairP(orders), _) => fit(orders, v)?.p().ok(),
            (Self::Holm(place), _) => holm(v).get(*place).copied(),
            (Self::QuartetsToSettle, [theta, deviation, margin]) => {
                quartets_to_settle(theta - margin, *deviation).map(f64::from)
            }
            (Self::LogMarginOfRate, [margin]) => Some(log_margin(*margin, true)),
            (Self::LogMarginOfTime, [margin]) => Some(log_margin(*margin, false)),
            (Self::PercentileBound(percent), _) => {
                percentile_upper_bound(&PerSession::new(v.to_vec())?, f64::from(*percent) / 100.0)
            }
            (Self::SignFlipP, _) => sign_flip(v).map(|t| t.p),
            (Self::DetectableEffect, [pairs]) => minimum_detectable_effect(*pairs as usize),
            (Self::SignFlipSmallestP, _) => sign_flip(v).map(|t| t.smallest_p),
            _ => None,
        }
    }
}

fn fit(orders: &[PairOrder], v: &[f64]) -> Option<PairEstimate> {
    fit_at(orders, v, ALPHA)
}

fn fit_at(orders: &[PairOrder], v: &[f64], level: f64) -> Option<PairEstimate> {
    if orders.len() != v.len() {
        return None;
    }
    let pairs: Vec<PairEffect> = v
        .iter()
        .zip(orders)
        .map(|(&log_ratio, &order)| PairEffect { log_ratio, order })
        .collect();
    pair_order_estimate_at(&pairs, level)
}

fn interval(orders: &[PairOrder], v: &[f64]) -> Option<Interval> {
    fit(orders, v)?.interval.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_formula_is_explained() {
        let orders = vec![PairOrder::Ab, PairOrder::Ba];
        let all = [
            Formula::Difference,
            Formula::AfterFirst,
            Formula::Sum,
            Formula::Quotient,
            Formula::PerMillisecond,
            Formula::SumOverSum,
            Formula::Median,
            Formula::Mean,
            Formula::Largest,
            Formula::Percentile(90),
            Formula::PooledPercentile(90, 29),
            Formula::Within,
            Formula::PowerOverTime,
            Formula::LogRatio,
            Formula::Exp,
            Formula::PairEffect(orders.clone()),
            Formula::PairDrift(orders.clone()),
            Formula::PairLow(orders.clone()),
            Formula::PairHigh(orders.clone()),
            Formula::PairLowAt(orders.clone()),
            Formula::PairHighAt(orders.clone()),
            Formula::PairDeviation(orders.clone()),
            Formula::PairP(orders),
            Formula::Holm(0),
            Formula::QuartetsToSettle,
            Formula::LogMarginOfRate,
            Formula::LogMarginOfTime,
            Formula::PercentileBound(90),
            Formula::SignFlipP,
            Formula::SignFlipSmallestP,
            Formula::DetectableEffect,
        ];
        for formula in all {
            let id = formula.id();
            let name = id.split('(').next().unwrap();
            assert!(
                Formula::explained().iter().any(|(n, _)| *n == name),
                "{name} is not explained"
            );
        }
        assert_eq!(
            Formula::PairEffect(vec![PairOrder::Ab, PairOrder::Ba]).id(),
            "pair-order-theta(AB,BA)"
        );
    }

    #[test]
    fn undefined_is_absent() {
        assert_eq!(Formula::Quotient.apply(&[1.0, 0.0]), None);
        assert_eq!(Formula::LogRatio.apply(&[0.0, 1.0]), None);
        assert_eq!(Formula::Median.apply(&[]), None);
        assert_eq!(Formula::AfterFirst.apply(&[0.0]), None);
        assert_eq!(Formula::PowerOverTime.apply(&[0.0, 5e6]), None);
        let watts = [0.0, 4e6, 1e9, 6e6, 3e9, 6e6];
        assert_eq!(Formula::PowerOverTime.apply(&watts), Some(17.0));
        assert_eq!(Formula::SumOverSum.apply(&[6.0, 4.0, 1.0, 1.0]), Some(5.0));
    }
}
