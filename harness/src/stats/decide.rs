//! What an interval says: the one place where a verdict is made, for real and simulated studies.

use super::Interval;

/// The two-sided level that studies err by: that of a 95% interval, or of all planned looks together.
pub const ALPHA: f64 = 0.05;

/// What an interval says about a margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The whole interval is slower by less than the margin.
    Pass,
    /// The whole interval is slower by more.
    Regression,
    /// It lies across.
    Inconclusive,
}

/// Judges the interval of a ratio (second arm over first, not logarithms) by the largest slowdown
/// that passes, a share. Slower is a lower rate or a longer time. On unrounded values.
pub fn against_margin(ratio: Interval, margin: f64, higher_is_better: bool) -> Decision {
    let (worst, best) = if higher_is_better {
        (1.0 - ratio.low, 1.0 - ratio.high)
    } else {
        (ratio.high - 1.0, ratio.low - 1.0)
    };
    if best > margin {
        Decision::Regression
    } else if worst < margin {
        Decision::Pass
    } else {
        Decision::Inconclusive
    }
}

/// Judges the interval of a ratio by the largest change that passes, of either sign.
pub fn within_margin(ratio: Interval, margin: f64) -> Decision {
    let (least, most) = (1.0 - margin, 1.0 + margin);
    if ratio.high < least || ratio.low > most {
        Decision::Regression
    } else if ratio.low > least && ratio.high < most {
        Decision::Pass
    } else {
        Decision::Inconclusive
    }
}

/// Where the margin lies in log units of the ratio.
pub fn log_margin(margin: f64, higher_is_better: bool) -> f64 {
    if higher_is_better {
        libm::log1p(-margin)
    } else {
        libm::log1p(margin)
    }
}

/// What an interval says about a difference, where there is no margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The interval of the ratio lies above 1.
    Above,
    /// It lies below 1.
    Below,
    /// It holds 1.
    NotShown,
}

/// Judges the interval of a ratio by whether it holds 1.
pub fn difference(ratio: Interval) -> Difference {
    if ratio.low > 1.0 {
        Difference::Above
    } else if ratio.high < 1.0 {
        Difference::Below
    } else {
        Difference::NotShown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, high: f64) -> Interval {
        Interval { low, high }
    }

    #[test]
    fn rates_and_times_are_slower_on_opposite_sides() {
        let by_rate = |low, high| against_margin(ratio(low, high), 0.05, true);
        let by_time = |low, high| against_margin(ratio(low, high), 0.05, false);
        assert_eq!(by_rate(0.96, 1.02), Decision::Pass);
        assert_eq!(by_rate(0.90, 0.94), Decision::Regression);
        assert_eq!(by_rate(0.94, 0.96), Decision::Inconclusive);
        assert_eq!(by_time(0.98, 1.04), Decision::Pass);
        assert_eq!(by_time(1.06, 1.10), Decision::Regression);
        assert_eq!(by_time(1.04, 1.06), Decision::Inconclusive);
        assert!((libm::exp(log_margin(0.05, true)) - 0.95).abs() < 1e-15);
        assert!((libm::exp(log_margin(0.05, false)) - 1.05).abs() < 1e-15);
    }

    #[test]
    fn a_change_of_either_sign_is_one() {
        let judged = |low, high| within_margin(ratio(low, high), 0.05);
        assert_eq!(judged(0.96, 1.04), Decision::Pass);
        assert_eq!(judged(0.90, 0.94), Decision::Regression);
        assert_eq!(judged(1.06, 1.10), Decision::Regression);
        assert_eq!(judged(0.94, 1.02), Decision::Inconclusive);
        assert_eq!(judged(0.98, 1.06), Decision::Inconclusive);
    }

    #[test]
    fn a_difference_is_shown_by_an_interval_without_1() {
        assert_eq!(difference(ratio(1.01, 1.02)), Difference::Above);
        assert_eq!(difference(ratio(0.97, 0.99)), Difference::Below);
        assert_eq!(difference(ratio(0.97, 1.0)), Difference::NotShown);
    }
}
