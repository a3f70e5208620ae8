//! Rotary position embedding (Su et al., 2021), with YaRN's interpolation (Peng et al., 2023) as
//! in gpt-oss's reference implementation.

use std::f64::consts::PI;

use crate::team::Team;

/// Which elements of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// (i, i + rotated / 2): gpt-oss.
    Halves,
    /// (2 i, 2 i + 1): llama's GGUF files, whose weights are permuted for it.
    Adjacent,
}

/// Where YaRN's ramp between the two frequencies begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YarnRamp {
    /// The reference: unrounded.
    Exact,
    /// llama.cpp: the beginning rounded down, the end up.
    Rounded,
}

/// How positions beyond the trained context are squeezed in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Angles divided by `factor`.
    Linear {
        /// Extended over original context.
        factor: f64,
    },
    /// YaRN: high frequencies stay, low ones are divided by `factor`.
    Yarn {
        /// Extended over original context.
        factor: f64,
        /// Context before the extension.
        original_context: f64,
        /// Rotations over the original context above which a frequency stays (32).
        beta_fast: f64,
        /// Rotations below which it is divided (1).
        beta_slow: f64,
        /// How the ramp's bounds are taken.
        ramp: YarnRamp,
    },
}

/// The frequencies of a model's rotation.
#[derive(Clone, Debug)]
pub struct RopeTable {
    /// Angle per position of each pair.
    pub frequencies: Vec<f64>,
    /// Factor on cosines and sines.
    pub attention_factor: f64,
    pairs: Pairs,
}

impl RopeTable {
    /// For heads of which `rotated` leading elements turn (an even number). `divisors`, one a
    /// pair, divide the frequencies first (`rope_freqs.weight`).
    pub fn new(
        rotated: usize,
        base: f64,
        scaling: RopeScaling,
        pairs: Pairs,
        divisors: Option<&[f32]>,
    ) -> Self {
        let half = rotated / 2;
        let mut frequencies: Vec<f64> = (0..half)
            .map(|i| libm::pow(base, -((2 * i) as f64) / rotated as f64))
            .collect();
        if let Some(divisors) = divisors {
            for (f, d) in frequencies.iter_mut().zip(divisors) {
                *f /= f64::from(*d);
            }
        }
        let mut attention_factor = 1.0;
        match scaling {
            RopeScaling::None => {}
            RopeScaling::Linear { factor } => frequencies.iter_mut().for_each(|f| *f /= factor),
            RopeScaling::Yarn { factor, .. } if factor <= 1.0 => {}
            RopeScaling::Yarn { factor, ramp, .. } => {
                let (low, high) = yarn_bounds(rotated, base, scaling, ramp);
                for (i, f) in frequencies.iter_mut().enumerate() {
                    let along = (i as f64 - low) / (high - low).max(0.001);
                    let stay = 1.0 - along.clamp(0.0, 1.0);
                    *f = *f / factor * (1.0 - stay) + *f * stay;
                }
                attention_factor = 0.1 * libm::log(factor) + 1.0;
            }
        }
        Self {
            frequencies,
            attention_factor,
            pairs,
        }
    }

    /// Cosines and sines of the given positions, one a row.
    pub fn rotation(&self, positions: impl ExactSizeIterator<Item = usize>) -> Rotation {
        let mut cos = Vec::with_capacity(positions.len() * self.frequencies.len());
        let mut sin = Vec::with_capacity(cos.capacity());
        for position in positions {
            for frequency in &self.frequencies {
                let (s, c) = libm::sincos(position as f64 * frequency);
                cos.push((c * self.attention_factor) as f32);
                sin.push((s * self.attention_factor) as f32);
            }
        }
        Rotation {
            cos,
            sin,
            half: self.frequencies.len(),
            pairs: self.pairs,
        }
    }
}

/// The pairs between which YaRN's ramp lies (0 for a scaling without one).
fn yarn_bounds(rotated: usize, base: f64, scaling: RopeScaling, ramp: YarnRamp) -> (f64, f64) {
    let RopeScaling::Yarn {
        original_context,
        beta_fast,
        beta_slow,
        ..
    } = scaling
    else {
        return (0.0, 0.0);
    };
    let pair = |rotations: f64| {
        rotated as f64 / 2.0 * libm::log(original_context / (rotations * 2.0 * PI))
            / libm::log(base)
    };
    let (low, high) = (pair(beta_fast), pair(beta_slow));
    match ramp {
        YarnRamp::Exact => (low, high),
        YarnRamp::Rounded => (low.floor().max(0.0), high.ceil().min(rotated as f64 - 1.0)),
    }
}

/// Cosines and sines for the rows of a pass.
#[derive(Clone, Debug)]
pub struct Rotation {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
    pairs: Pairs,
}

impl Rotation {
    /// Turns each head of `x`, `[rows, heads, head_dim]`, in place.
    pub fn apply(&self, team: &Team, x: &mut [f32], heads: usize, head_dim: usize) {
        let half = self.half;
        team.for_chunks(x, heads * head_dim, |t, token| {
            let cos = &self.cos[t * half..][..half];
            let sin = &self.sin[t * half..][..half];
            for head in token.chunks_exact_mut(head_dim) {
                for i in 0..half {
                    let (a, b) = match self.pairs {
                        Pairs::Halves => (i, i + half),
                        Pairs::Adjacent => (2 * i, 2 * i + 1),
                    };
                    let (x, y) = (head[a], head[b]);
                    head[a] = x * cos[i] - y * sin[i];
                    head[b] = y * cos[i] + x * sin[i];
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPT_OSS: RopeScaling = RopeScaling::Yarn {
        factor: 32.0,
        original_context: 4096.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        ramp: YarnRamp::Exact,
    };

    fn frequencies(ramp: YarnRamp) -> RopeTable {
        let RopeScaling::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
            ..
        } = GPT_OSS
        else {
            unreachable!()
        };
        let scaling = RopeScaling::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
            ramp,
        };
        RopeTable::new(64, 150_000.0, scaling, Pairs::Halves, None)
    }

    #[test]
    fn gpt_oss_bounds_and_factor() {
        let (low, high) = yarn_bounds(64, 150_000.0, GPT_OSS, YarnRamp::Exact);
        assert!((low - 8.0928).abs() < 5e-5, "{low}");
        assert!((high - 17.3980).abs() < 5e-5, "{high}");
        assert_eq!(
            yarn_bounds(64, 150_000.0, GPT_OSS, YarnRamp::Rounded),
            (8.0, 18.0)
        );
        let table = frequencies(YarnRamp::Exact);
        assert_eq!(table.attention_factor as f32, 1.346_573_6);
    }

    /// Pairs before the ramp stay, those behind it are divided by 32, and three of those on it were
    /// worked out from the formula apart from this code.
    #[test]
    fn gpt_oss_frequencies_are_golden() {
        let table = frequencies(YarnRamp::Exact);
        let plain = |i: i32| 150_000f64.powf(-f64::from(i) / 32.0);
        for i in 0..=8 {
            assert!(
                (table.frequencies[i as usize] / plain(i) - 1.0).abs() < 1e-12,
                "pair {i}"
            );
        }
        for i in 18..32 {
            let expected = plain(i) / 32.0;
            assert!(
                (table.frequencies[i as usize] / expected - 1.0).abs() < 1e-12,
                "pair {i}"
            );
        }
        for (i, expected) in GOLDEN {
            let got = table.frequencies[i];
            assert!((got / expected - 1.0).abs() < 1e-9, "pair {i}: {got:e}");
        }
    }

    const GOLDEN: [(usize, f64); 3] = [
        (9, 0.03170569618466377),
        (12, 0.006794959489732219),
        (17, 0.0001293187012450632),
    ];

    #[test]
    fn the_rounded_ramp_moves_only_the_pairs_between() {
        let (exact, rounded) = (frequencies(YarnRamp::Exact), frequencies(YarnRamp::Rounded));
        let moved: Vec<usize> = (0..32)
            .filter(|&i| (exact.frequencies[i] / rounded.frequencies[i] - 1.0).abs() > 1e-9)
            .collect();
        assert_eq!(moved, (9..18).collect::<Vec<_>>());
    }

    #[test]
    fn both_pairings_turn_by_the_angle() {
        for (pairs, other) in [(Pairs::Halves, 2), (Pairs::Adjacent, 1)] {
            let table = RopeTable::new(4, 100.0, RopeScaling::None, pairs, None);
            let mut x = vec![1.0, 0.0, 0.0, 0.0, 9.0];
            table.rotation(3..4).apply(&Team::new(1), &mut x, 1, 5);
            assert!((x[0] - 3f32.cos()).abs() < 1e-6);
            assert!((x[other] - 3f32.sin()).abs() < 1e-6);
            assert_eq!(x[4], 9.0);
        }
    }
}
