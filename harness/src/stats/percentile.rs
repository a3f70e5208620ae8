//! Percentiles, where there are observations for them.

/// The least value that at least `percent` of the values do not exceed (nearest rank). Absent for
/// NaN and where there are too few values to bound it: the largest of n is above the percentile
/// with probability 1 - p^n, which must reach 95%: 29 values for p90, 59 for p95, 299 for p99.
pub fn percentile(values: &[f64], percent: u8) -> Option<f64> {
    let share = f64::from(percent) / 100.0;
    if !(0.0..1.0).contains(&share) || values.iter().any(|v| v.is_nan()) {
        return None;
    }
    if values.len() < least_observations(percent) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (values.len() * usize::from(percent)).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The smallest n with p^n of at most 5%.
pub fn least_observations(percent: u8) -> usize {
    let share = f64::from(percent) / 100.0;
    let mut chance = 1.0;
    let mut n = 0;
    while chance > 0.05 {
        chance *= share;
        n += 1;
        if n > 100_000 {
            break;
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_observations_give_none() {
        assert_eq!([90, 95, 99].map(least_observations), [29, 59, 299]);
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&values, 90), Some(90.0));
        assert_eq!(percentile(&values, 95), Some(95.0));
        assert_eq!(percentile(&values, 99), None);
        assert_eq!(percentile(&values[..29], 90), Some(27.0));
        assert_eq!(percentile(&values[..28], 90), None);
        assert_eq!(percentile(&values[..28], 0), Some(1.0));
        assert_eq!(percentile(&[f64::NAN; 40], 90), None);
        assert_eq!(percentile(&values, 100), None);
    }
}
