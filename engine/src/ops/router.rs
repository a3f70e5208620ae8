//! Which experts a token goes to.

use super::reduce::sum;
use crate::kernels::exp;

/// One expert of a token, with its share of the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Index of the expert.
    pub expert: usize,
    /// Softmax over the chosen experts' logits.
    pub weight: f32,
}

/// gpt-oss's router: the `k` largest logits (ties go to the lower index), largest first, and a
/// softmax over those. Appends `k` choices to `out`. The logits are finite.
pub fn route(logits: &[f32], k: usize, out: &mut Vec<Choice>) {
    let first = out.len();
    for _ in 0..k {
        let mut best: Option<usize> = None;
        for (e, &logit) in logits.iter().enumerate() {
            let taken = out[first..].iter().any(|c| c.expert == e);
            if !taken && best.is_none_or(|b| logit > logits[b]) {
                best = Some(e);
            }
        }
        let Some(expert) = best else { break };
        out.push(Choice {
            expert,
            weight: 0.0,
        });
    }
    let chosen = &mut out[first..];
    let Some(top) = chosen.first().map(|c| logits[c.expert]) else {
        return;
    };
    let weights: Vec<f32> = chosen.iter().map(|c| exp(logits[c.expert] - top)).collect();
    let total = sum(&weights);
    for (choice, weight) in chosen.iter_mut().zip(weights) {
        choice.weight = weight / total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_chosen_and_ties_go_low() {
        let mut out = Vec::new();
        route(&[1.0, 3.0, 3.0, 0.0, 3.0], 2, &mut out);
        assert_eq!(out.iter().map(|c| c.expert).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(out[0].weight, 0.5);
        route(&[0.0, -1.0, 2.0, 1.0], 3, &mut out);
        let chosen = &out[2..];
        assert_eq!(
            chosen.iter().map(|c| c.expert).collect::<Vec<_>>(),
            [2, 3, 0]
        );
        let z: f64 = [2.0f64, 1.0, 0.0].iter().map(|l| l.exp()).sum();
        assert!((f64::from(chosen[0].weight) - 2.0f64.exp() / z).abs() < 1e-6);
        assert!((chosen.iter().map(|c| c.weight).sum::<f32>() - 1.0).abs() < 1e-6);
    }
}
