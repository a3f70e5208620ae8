//! The pair-plus-order estimate: d_k = theta + beta * s_k over adjacent pairs of sessions.
//!
//! In a mirrored plan each quartet holds one pair in each order, so a drift that is linear in time
//! adds +delta to one and -delta to the other: it lands in beta and leaves theta alone.

use serde::{Deserialize, Serialize};

use super::t_quantile;

/// Which arm of a pair ran first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairOrder {
    /// The first arm of the study, then the second.
    Ab,
    /// The other way round.
    Ba,
}

impl PairOrder {
    /// s_k: +1 for AB, -1 for BA.
    pub fn sign(self) -> f64 {
        match self {
            Self::Ab => 1.0,
            Self::Ba => -1.0,
        }
    }
}

/// What one pair of sessions says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairEffect {
    /// ln(second arm / first arm), whichever ran first.
    pub log_ratio: f64,
    /// Which ran first.
    pub order: PairOrder,
}

/// A two-sided interval in log units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoInterval {
    /// Two unknowns (effect and drift) from two pairs leave nothing to judge the noise by.
    #[error(
        "{0} pairs of sessions determine the effect and the drift exactly and leave no degree of freedom to judge the noise by; an interval needs at least 3 pairs"
    )]
    TooFewPairs(usize),
    /// Effect and drift cannot be told apart.
    #[error("every pair ran in the same order, so an effect cannot be told from drift")]
    OneOrder,
}

/// The estimate, in log units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairEstimate {
    /// The effect: exp(theta) is the ratio second arm / first arm.
    pub theta: f64,
    /// The drift per pair order.
    pub beta: f64,
    /// 95% t interval of theta with n - 2 degrees of freedom, or why not.
    pub interval: Result<Interval, NoInterval>,
}

/// Least squares over pairs; absent when there are none, or when all ran in the same order and
/// there is no telling the effect from drift.
pub fn pair_order_estimate(pairs: &[PairEffect]) -> Option<PairEstimate> {
    let n = pairs.len() as f64;
    let s: f64 = pairs.iter().map(|p| p.order.sign()).sum();
    let d: f64 = pairs.iter().map(|p| p.log_ratio).sum();
    let sd: f64 = pairs.iter().map(|p| p.order.sign() * p.log_ratio).sum();
    let determinant = n * n - s * s;
    if determinant == 0.0 {
        return None;
    }
    let theta = (n * d - s * sd) / determinant;
    let beta = (n * sd - s * d) / determinant;
    let interval = if pairs.len() < 3 {
        Err(NoInterval::TooFewPairs(pairs.len()))
    } else {
        let rss: f64 = pairs
            .iter()
            .map(|p| (p.log_ratio - theta - beta * p.order.sign()).powi(2))
            .sum();
        let standard_error = (rss / (n - 2.0) * n / determinant).sqrt();
        let half = t_quantile(0.975, n - 2.0) * standard_error;
        Ok(Interval {
            low: theta - half,
            high: theta + half,
        })
    };
    Some(PairEstimate {
        theta,
        beta,
        interval,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(log_ratio: f64, order: PairOrder) -> PairEffect {
        PairEffect { log_ratio, order }
    }

    #[test]
    fn linear_drift_cancels_in_one_quartet() {
        // True effect 0.2; each session is 0.05 slower than the one before: A B B A.
        let e =
            pair_order_estimate(&[pair(0.25, PairOrder::Ab), pair(0.15, PairOrder::Ba)]).unwrap();
        assert!((e.theta - 0.2).abs() < 1e-15 && (e.beta - 0.05).abs() < 1e-15);
        assert_eq!(e.interval, Err(NoInterval::TooFewPairs(2)));
    }

    #[test]
    fn one_order_only_gives_nothing() {
        assert_eq!(pair_order_estimate(&[pair(0.1, PairOrder::Ab); 4]), None);
        assert_eq!(pair_order_estimate(&[]), None);
    }
}
