//! An upper bound of a percentile over sessions, where there are enough of them.

use super::student::incomplete_beta;

/// Confidence of a percentile's bound.
pub const CONFIDENCE: f64 = 0.95;

/// One number a session. Requests of one session share its luck, so what is one number a request
/// is first made one a session (its largest, its median).
#[derive(Clone, Debug, PartialEq)]
pub struct PerSession(Vec<f64>);

impl PerSession {
    /// `values` has one entry a session; absent for NaN.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        (!values.iter().any(|v| v.is_nan())).then_some(Self(values))
    }

    /// How many sessions.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An upper 95% bound of a percentile over sessions, whatever their distribution: the smallest
/// order statistic that lies above the percentile with 95% confidence. Absent where even the
/// largest does not: below 29 sessions for p90, 59 for p95, 299 for p99 (S. S. Wilks, "Determination of
/// sample sizes for setting tolerance limits", 1941; see [`super::least_observations`]).
///
/// W. J. Conover, "Practical Nonparametric Statistics", section 3.2: the k-th smallest of n exceeds
/// the percentile with the probability that a binomial (n, percentile) is below k. Wilks's sizes
/// for the largest, the second and the third largest at 0.95 are 59, 93 and 124.
pub fn percentile_upper_bound(sessions: &PerSession, percentile: f64) -> Option<f64> {
    if !(percentile > 0.0 && percentile < 1.0) {
        return None;
    }
    let n = sessions.len();
    // P(binomial < k) = I_{1 - percentile}(n - k + 1, k).
    let confidence = |k: usize| incomplete_beta(1.0 - percentile, (n - k + 1) as f64, k as f64);
    let k = (1..=n).find(|&k| confidence(k) >= CONFIDENCE)?;
    Some(sessions.0[k - 1])
}

#[cfg(test)]
mod tests {
    use super::super::least_observations;
    use super::*;

    fn ranks(n: usize) -> PerSession {
        PerSession::new((1..=n).map(|i| i as f64).collect()).unwrap()
    }

    #[test]
    fn wilkss_sizes() {
        for (percent, needed) in [(90, 29), (95, 59), (99, 299)] {
            assert_eq!(least_observations(percent), needed);
            let percentile = f64::from(percent) / 100.0;
            assert_eq!(percentile_upper_bound(&ranks(needed - 1), percentile), None);
            let bound = percentile_upper_bound(&ranks(needed), percentile);
            assert_eq!(bound, Some(needed as f64), "the largest");
        }
        // The second largest from 93 on, the third from 124.
        assert_eq!(percentile_upper_bound(&ranks(92), 0.95), Some(92.0));
        assert_eq!(percentile_upper_bound(&ranks(93), 0.95), Some(92.0));
        assert_eq!(percentile_upper_bound(&ranks(124), 0.95), Some(122.0));
    }

    #[test]
    fn order_does_not_matter_and_nan_is_refused() {
        let mut values: Vec<f64> = (1..=29).map(f64::from).collect();
        values.reverse();
        let bound = percentile_upper_bound(&PerSession::new(values).unwrap(), 0.9);
        assert_eq!(bound, Some(29.0));
        assert_eq!(PerSession::new(vec![1.0, f64::NAN]), None);
    }
}
