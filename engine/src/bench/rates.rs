//! Statistics of a test's repetitions.

use std::time::Duration;

/// Times of the repetitions, and what follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// Nanoseconds of each repetition, in order.
    pub samples_ns: Vec<u64>,
    /// Tokens a second of each.
    pub samples_ts: Vec<f64>,
}

impl Rates {
    /// `tokens` in each of these times, of which there is at least one. A time below the clock's
    /// step counts as one nanosecond.
    pub fn new(tokens: usize, times: &[Duration]) -> Self {
        let samples_ns: Vec<u64> = times
            .iter()
            .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1))
            .collect();
        let samples_ts = samples_ns
            .iter()
            .map(|&ns| tokens as f64 * 1e9 / ns as f64)
            .collect();
        Self {
            samples_ns,
            samples_ts,
        }
    }

    /// Mean of the repetitions' tokens a second.
    pub fn mean_ts(&self) -> f64 {
        mean(&self.samples_ts)
    }

    /// Their standard deviation (over n - 1); `None` for one repetition.
    pub fn stddev_ts(&self) -> Option<f64> {
        stddev(&self.samples_ts)
    }

    /// The middle one.
    pub fn median_ts(&self) -> f64 {
        let mut sorted = self.samples_ts.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        }
    }

    /// Mean time, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        mean(&self.ns())
    }

    /// Its standard deviation.
    pub fn stddev_ns(&self) -> Option<f64> {
        stddev(&self.ns())
    }

    fn ns(&self) -> Vec<f64> {
        self.samples_ns.iter().map(|&ns| ns as f64).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn stddev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let rates = Rates::new(100, &[1, 2, 4].map(Duration::from_secs));
        assert_eq!(rates.samples_ts, [100.0, 50.0, 25.0]);
        assert!((rates.mean_ts() - 175.0 / 3.0).abs() < 1e-12);
        assert_eq!(rates.median_ts(), 50.0);
        // Deviations 41.67, -8.33, -33.33: squares sum to 2916.67.
        assert!((rates.stddev_ts().unwrap() - 1458.333333_f64.sqrt()).abs() < 1e-6);
        let one = Rates::new(8, &[Duration::ZERO]);
        assert_eq!((one.stddev_ts(), one.samples_ns[0]), (None, 1));
    }
}
