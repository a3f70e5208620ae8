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

/// gpt-oss's router, and Qwen3-MoE's: the `k` largest logits (ties go to the lower index), largest
/// first, and a softmax over those. Appends `k` choices to `out`, fewer when there are fewer
/// logits. The logits are finite.
pub fn route(logits: &[f32], k: usize, out: &mut Vec<Choice>) {
    let first = out.len();
    for (expert, &logit) in logits.iter().enumerate() {
        let place = out[first..].partition_point(|c| logits[c.expert] >= logit);
        if place < k {
            out.truncate(first + k - 1);
            out.insert(
                first + place,
                Choice {
                    expert,
                    weight: 0.0,
                },
            );
        }
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
    fn many_experts_are_ranked_as_a_sort_ranks_them() {
        let logits: Vec<f32> = (0..128).map(|i| ((i * 37) % 53) as f32).collect();
        let mut sorted: Vec<usize> = (0..128).collect();
        sorted.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
        for k in [1, 8, 127, 128] {
            let mut out = Vec::new();
            route(&logits, k, &mut out);
            let chosen: Vec<usize> = out.iter().map(|c| c.expert).collect();
            assert_eq!(chosen, sorted[..k]);
        }
    }

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
