//! Small summaries.

/// Median; the mean of the middle two for an even count. Absent for nothing and for NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| v.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    })
}

/// Sum of amounts over sum of seconds: the rate of the whole, never a mean of rates. Absent when
/// there is nothing or no time passed.
pub fn weighted_rate(amounts: &[f64], seconds: &[f64]) -> Option<f64> {
    let time: f64 = seconds.iter().sum();
    (!amounts.is_empty() && time > 0.0).then(|| amounts.iter().sum::<f64>() / time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn a_weighted_rate_is_not_a_mean_of_rates() {
        // 100 tokens in 1 s and 100 in 9 s: 20 a second, where the mean of rates says 55.6.
        assert_eq!(weighted_rate(&[100.0, 100.0], &[1.0, 9.0]), Some(20.0));
        assert_eq!(weighted_rate(&[1.0], &[0.0]), None);
        assert_eq!(weighted_rate(&[], &[]), None);
    }
}
