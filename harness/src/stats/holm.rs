//! Several metrics at once.

/// Holm's step-down adjustment: each p as it stands among the others, so that comparing the
/// adjusted ones with 5% errs in 5% of families, however the metrics depend on each other.
///
/// S. Holm, "A simple sequentially rejective multiple test procedure", 1979. Worked example (the
/// four hypotheses that textbooks and encyclopaedias repeat): 0.01, 0.04, 0.03, 0.005 become 0.03,
/// 0.06, 0.06, 0.02.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &at) in order.iter().enumerate() {
        let factor = (p.len() - rank) as f64;
        largest = largest.max((p[at] * factor).min(1.0));
        adjusted[at] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-15, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
