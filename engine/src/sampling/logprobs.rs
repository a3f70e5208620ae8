//! Log-probabilities under the unmodified softmax.

/// Log-probabilities of a choice and of the best alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct LogProbs {
    /// Of the chosen token, natural logarithm.
    pub chosen: f32,
    /// The best tokens, best first; ties go to the lower id.
    pub top: Vec<(u32, f32)>,
}

/// Log-probabilities of `chosen` and of the `n` best tokens.
pub fn log_probs(logits: &[f32], chosen: u32, n: usize) -> LogProbs {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = logits
        .iter()
        .map(|&l| libm::exp(f64::from(l) - f64::from(max)))
        .sum();
    let log_total = f64::from(max) + libm::log(total);
    let of = |id: u32| (f64::from(logits[id as usize]) - log_total) as f32;
    let mut best: Vec<u32> = (0..logits.len() as u32).collect();
    let order = |a: &u32, b: &u32| {
        logits[*b as usize]
            .total_cmp(&logits[*a as usize])
            .then(a.cmp(b))
    };
    let n = n.min(best.len());
    if n < best.len() {
        best.select_nth_unstable_by(n, order);
        best.truncate(n);
    }
    best.sort_unstable_by(order);
    LogProbs {
        chosen: of(chosen),
        top: best.into_iter().map(|id| (id, of(id))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_softmax() {
        let got = log_probs(&[1.0, 3.0, 2.0, 3.0], 2, 3);
        let total: f64 = [1.0f64, 3.0, 2.0, 3.0].iter().map(|l| l.exp()).sum();
        assert!((f64::from(got.chosen) - (2.0 - total.ln())).abs() < 1e-6);
        assert_eq!(got.top.iter().map(|t| t.0).collect::<Vec<_>>(), [1, 3, 2]);
        assert!((f64::from(got.top[0].1) - (3.0 - total.ln())).abs() < 1e-6);
        assert_eq!(log_probs(&[0.0, 0.0], 0, 9).top.len(), 2);
        assert!(log_probs(&[0.0, 0.0], 0, 0).top.is_empty());
    }
}
