//! Choosing the next token.

use std::collections::BTreeMap;

use super::SamplingParams;
use super::rng::{draw, fresh_seed};

/// The token with the largest logit; ties go to the lowest id.
pub fn greedy(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (id, &logit) in logits.iter().enumerate() {
        if logit > logits[best] {
            best = id;
        }
    }
    best as u32
}

/// A request's way of choosing tokens, with what it remembers of those chosen.
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplingParams,
    seed: u64,
    counts: BTreeMap<u32, u32>,
    drawn: u64,
}

impl Sampler {
    /// A sampler for one generation. Without a seed a fresh one is drawn.
    pub fn new(params: SamplingParams) -> Self {
        let seed = params.seed.unwrap_or_else(fresh_seed);
        Self {
            params,
            seed,
            counts: BTreeMap::new(),
            drawn: 0,
        }
    }

    /// The seed in use.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Chooses a token. Penalties and bias first, then temperature, top-k, top-p, min-p, draw.
    pub fn choose(&mut self, logits: &[f32]) -> u32 {
        let id = if self.plain_greedy() {
            greedy(logits)
        } else {
            let mut logits = logits.to_vec();
            self.adjust(&mut logits);
            if self.params.temperature <= 0.0 {
                greedy(&logits)
            } else {
                self.sample(&logits)
            }
        };
        *self.counts.entry(id).or_default() += 1;
        self.drawn += 1;
        id
    }

    /// The choice depends on so many of the highest logits alone; `None`: on all of them. Top-p
    /// and min-p after a top-k look at what it left; top-p alone at the sum over all tokens.
    pub fn best_needed(&self) -> Option<usize> {
        let p = &self.params;
        if self.plain_greedy() {
            return Some(1);
        }
        let plain =
            p.logit_bias.is_empty() && p.presence_penalty == 0.0 && p.frequency_penalty == 0.0;
        (plain && p.top_k > 0).then_some(p.top_k as usize)
    }

    fn plain_greedy(&self) -> bool {
        let p = &self.params;
        p.temperature <= 0.0
            && p.logit_bias.is_empty()
            && p.presence_penalty == 0.0
            && p.frequency_penalty == 0.0
    }

    /// Penalties over the tokens chosen so far, and the bias.
    fn adjust(&self, logits: &mut [f32]) {
        for (&id, &count) in &self.counts {
            let penalty =
                self.params.presence_penalty + self.params.frequency_penalty * count as f32;
            logits[id as usize] -= penalty;
        }
        for &(id, bias) in &self.params.logit_bias {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit += bias;
            }
        }
    }

    fn sample(&self, logits: &[f32]) -> u32 {
        let p = &self.params;
        // Best first, ties to the lower id: the order that every cut and the draw go by.
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let mut candidates: Vec<(f32, u32)> = logits
            .iter()
            .zip(0..)
            .map(|(&logit, id)| (logit, id))
            .collect();
        let k = p.top_k as usize;
        if k > 0 && k < candidates.len() {
            candidates.select_nth_unstable_by(k, order);
            candidates.truncate(k);
        }
        candidates.sort_unstable_by(order);
        let best = f64::from(candidates[0].0);
        let temperature = f64::from(p.temperature);
        let mut weights: Vec<f64> = candidates
            .iter()
            .map(|&(logit, _)| libm::exp((f64::from(logit) - best) / temperature))
            .collect();
        if p.top_p < 1.0 {
            // The shortest run whose probability reaches top_p, the token that crosses included.
            let wanted = weights.iter().sum::<f64>() * f64::from(p.top_p);
            let mut total = 0.0;
            let crossing = weights.iter().position(|w| {
                total += w;
                total >= wanted
            });
            weights.truncate(crossing.map_or(weights.len(), |i| i + 1));
        }
        if p.min_p > 0.0 {
            let least = weights[0] * f64::from(p.min_p);
            let kept = weights.iter().take_while(|&&w| w >= least).count();
            weights.truncate(kept.max(1));
        }
        let mut left = draw(self.seed, self.drawn) * weights.iter().sum::<f64>();
        for (&(_, id), weight) in candidates.iter().zip(&weights) {
            left -= weight;
            if left < 0.0 {
                return id;
            }
        }
        // Rounding may leave a sliver behind the last; it belongs to the last.
        candidates[weights.len() - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> SamplingParams {
        SamplingParams {
            seed: Some(42),
            ..SamplingParams::default()
        }
    }

    fn shares(params: SamplingParams, logits: &[f32], n: u64) -> Vec<f64> {
        let mut counts = vec![0u32; logits.len()];
        let mut sampler = Sampler::new(params);
        for _ in 0..n {
            counts[sampler.choose(logits) as usize] += 1;
        }
        counts.iter().map(|&c| f64::from(c) / n as f64).collect()
    }

    #[test]
    fn greedy_ties_go_to_the_lowest_id() {
        assert_eq!(greedy(&[0.0, 2.0, 2.0, 1.0]), 1);
        let mut sampler = Sampler::new(SamplingParams {
            temperature: 0.0,
            ..params()
        });
        assert_eq!(sampler.choose(&[-1.0, -1.0]), 0);
    }

    #[test]
    fn shares_follow_the_softmax_and_the_temperature() {
        let logits = [0.0, 3f32.ln(), 6f32.ln()];
        let got = shares(params(), &logits, 20_000);
        for (share, expected) in got.iter().zip([0.1, 0.3, 0.6]) {
            assert!((share - expected).abs() < 0.015, "{got:?}");
        }
        let cold = shares(
            SamplingParams {
                temperature: 0.5,
                ..params()
            },
            &logits,
            20_000,
        );
        for (share, expected) in cold.iter().zip([1.0 / 46.0, 9.0 / 46.0, 36.0 / 46.0]) {
            assert!((share - expected).abs() < 0.015, "{cold:?}");
        }
    }

    #[test]
    fn cuts_leave_what_they_should() {
        let logits = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
        let kept = |p: SamplingParams| {
            shares(p, &logits, 3000)
                .iter()
                .map(|&s| s > 0.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            kept(SamplingParams {
                top_k: 2,
                ..params()
            }),
            [true, true, false, false]
        );
        assert_eq!(
            kept(SamplingParams {
                top_k: 1,
                ..params()
            }),
            [true, false, false, false]
        );
        assert_eq!(
            kept(SamplingParams {
                top_p: 0.7,
                ..params()
            }),
            [true, true, false, false]
        );
        assert_eq!(
            kept(SamplingParams {
                top_p: 0.0,
                ..params()
            }),
            [true, false, false, false]
        );
        assert_eq!(
            kept(SamplingParams {
                min_p: 0.2,
                ..params()
            }),
            [true, true, true, false]
        );
        assert_eq!(kept(params()), [true; 4]);
    }

    #[test]
    fn penalties_and_bias_move_logits() {
        let greedy = SamplingParams {
            temperature: 0.0,
            ..params()
        };
        let mut sampler = Sampler::new(SamplingParams {
            presence_penalty: 1.0,
            ..greedy.clone()
        });
        let logits = [1.5, 1.0, 0.0];
        let ids: Vec<u32> = (0..4).map(|_| sampler.choose(&logits)).collect();
        assert_eq!(ids, [0, 1, 0, 0]);
        let mut sampler = Sampler::new(SamplingParams {
            frequency_penalty: 1.0,
            ..greedy.clone()
        });
        let ids: Vec<u32> = (0..5).map(|_| sampler.choose(&logits)).collect();
        assert_eq!(ids, [0, 1, 0, 1, 2]);
        let bias = vec![(2, 5.0), (0, -100.0), (99, 1.0)];
        let mut sampler = Sampler::new(SamplingParams {
            logit_bias: bias,
            ..greedy
        });
        assert_eq!(sampler.choose(&logits), 2);
    }

    #[test]
    fn logits_below_those_needed_may_be_missing() {
        let cases = [
            (0.0, 0, 1.0, Some(1)),
            (0.8, 5, 1.0, Some(5)),
            (0.8, 5, 0.7, Some(5)),
            (0.8, 0, 0.7, None),
            (1.0, 0, 1.0, None),
        ];
        for (temperature, top_k, top_p, needed) in cases {
            let p = SamplingParams {
                temperature,
                top_k,
                top_p,
                min_p: 0.01,
                ..params()
            };
            let (mut all, mut some) = (Sampler::new(p.clone()), Sampler::new(p.clone()));
            assert_eq!(all.best_needed(), needed);
            let Some(k) = needed else { continue };
            for i in 0..200 {
                let logits: Vec<f32> = (0..60).map(|j| ((i * 60 + j) as f32).sin() * 4.0).collect();
                let mut sorted = logits.clone();
                sorted.sort_unstable_by(|a, b| b.total_cmp(a));
                let keep = |l: &f32| {
                    if *l < sorted[k - 1] {
                        f32::NEG_INFINITY
                    } else {
                        *l
                    }
                };
                let left: Vec<f32> = logits.iter().map(keep).collect();
                assert_eq!(all.choose(&logits), some.choose(&left));
            }
            let changed = SamplingParams {
                presence_penalty: 0.1,
                ..p.clone()
            };
            assert_eq!(Sampler::new(changed).best_needed(), None);
            let changed = SamplingParams {
                logit_bias: vec![(1, 0.5)],
                ..p
            };
            assert_eq!(Sampler::new(changed).best_needed(), None);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_tokens() {
        let logits: Vec<f32> = (0..50).map(|i| (i as f32 * 0.7).sin()).collect();
        let run = |seed| {
            let mut sampler = Sampler::new(SamplingParams { seed, ..params() });
            let ids: Vec<u32> = (0..30).map(|_| sampler.choose(&logits)).collect();
            (ids, sampler.seed())
        };
        assert_eq!(run(Some(1)), run(Some(1)));
        assert_ne!(run(Some(1)).0, run(Some(2)).0);
        let (ids, seed) = run(None);
        assert_eq!(run(Some(seed)).0, ids);
    }
}
