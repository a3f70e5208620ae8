//! From a recipe to bytes, row by row: only +, -, *, / and square roots, so that every machine
//! makes the same file.

use half::f16;

use super::Recipe;
use super::rng::{Stream, key};
use crate::formats::blocks::{GgmlType, MXFP4_DOUBLED};

/// Directions of the hidden state that attention writes and routers read.
const SLOW_DIRECTIONS: u64 = 4;

/// A tensor to be filled.
#[derive(Clone, Debug)]
pub(super) struct Target<'a> {
    pub(super) seed: u64,
    pub(super) name: &'a str,
    pub(super) ty: GgmlType,
    pub(super) cols: usize,
    /// Rows over all experts.
    pub(super) rows: u64,
    pub(super) recipe: Recipe,
}

/// What all rows of one tensor share.
pub(super) struct Filler<'a> {
    target: Target<'a>,
    key: u64,
    /// Slow directions over this tensor's input (scaled to unit length), where it needs them.
    inputs: Vec<Vec<f32>>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(target: Target<'a>) -> Self {
        let key = key(target.seed, target.name);
        let cols = target.cols;
        let inputs = match target.recipe {
            // What attention reads along differs by layer; what routers read is shared.
            Recipe::SlowOutput { gain, .. } if gain > 0.0 => directions(key, cols),
            Recipe::Router { skew, .. } if skew > 0.0 => {
                directions(self::key(target.seed, "slow"), cols)
            }
            _ => Vec::new(),
        };
        Self {
            target,
            key,
            inputs,
        }
    }

    /// Appends the bytes of row `row`.
    pub(super) fn row(&self, row: u64, out: &mut Vec<u8>) {
        let t = &self.target;
        let mut stream = Stream::of_row(self.key, row);
        match (t.recipe, t.ty) {
            (Recipe::Noise(std), GgmlType::Mxfp4) => mxfp4_noise(&mut stream, std, t.cols, out),
            (Recipe::Noise(std), GgmlType::Q8_0) => q8_0_noise(&mut stream, std, t.cols, out),
            (Recipe::Noise(std), GgmlType::Q4K | GgmlType::Q6K) => {
                k_noise(&mut stream, std, (t.ty, t.cols), out);
            }
            _ => t.ty.quantize_row(&self.values(row, &mut stream), out),
        }
    }

    fn values(&self, row: u64, stream: &mut Stream) -> Vec<f32> {
        let t = &self.target;
        let noise = |stream: &mut Stream, std: f32| -> Vec<f32> {
            (0..t.cols).map(|_| stream.normal() * std).collect()
        };
        match t.recipe {
            Recipe::Noise(std) => noise(stream, std),
            Recipe::NearOne(std) => noise(stream, std).iter().map(|x| 1.0 + x).collect(),
            Recipe::SlowOutput { std, gain } => {
                let mut values = noise(stream, std);
                let shared = self::key(t.seed, "slow");
                for (i, input) in self.inputs.iter().enumerate() {
                    let output = slow_direction(shared, i as u64, row, t.rows);
                    add_scaled(&mut values, input, gain * output);
                }
                values
            }
            Recipe::Router { std, skew } => {
                let mut values = noise(stream, std);
                for input in &self.inputs {
                    let mix = stream.normal();
                    add_scaled(&mut values, input, skew * mix);
                }
                values
            }
            Recipe::RouterBias { skew } => {
                let ranks = ranking(stream, t.cols);
                ranks
                    .iter()
                    .map(|r| 0.1 * stream.normal() - skew * harmonic(*r))
                    .collect()
            }
        }
    }
}

fn add_scaled(values: &mut [f32], direction: &[f32], scale: f32) {
    for (v, d) in values.iter_mut().zip(direction) {
        *v += scale * d;
    }
}

fn directions(key: u64, len: usize) -> Vec<Vec<f32>> {
    (0..SLOW_DIRECTIONS)
        .map(|i| {
            (0..len as u64)
                .map(|j| slow_direction(key, i, j, len as u64))
                .collect()
        })
        .collect()
}

/// Component `j` of direction `i` of unit length over `len` components: a random sign each.
fn slow_direction(key: u64, i: u64, j: u64, len: u64) -> f32 {
    Stream::of_row(key ^ (i + 1), j).sign() / (len as f32).sqrt()
}

/// A random ranking 1 to `n` (Fisher and Yates).
fn ranking(stream: &mut Stream, n: usize) -> Vec<usize> {
    let mut ranks: Vec<usize> = (1..=n).collect();
    for i in (1..n).rev() {
        ranks.swap(i, stream.below(i as u64 + 1) as usize);
    }
    ranks
}

/// 1/2 + 1/3 + ... + 1/rank: about ln(rank) - 0.42, and 0 for the first.
fn harmonic(rank: usize) -> f32 {
    (2..=rank).map(|i| 1.0 / i as f64).sum::<f64>() as f32
}

/// Blocks of uniform E2M1 codes under one of two neighbouring exponents, mixed so that the
/// standard deviation is `std`.
fn mxfp4_noise(stream: &mut Stream, std: f32, cols: usize, out: &mut Vec<u8>) {
    let squares = MXFP4_DOUBLED
        .iter()
        .map(|v| f64::from(*v) * f64::from(*v))
        .sum::<f64>()
        / 16.0;
    let wanted = f64::from(std) * f64::from(std) / squares; // the mean square scale
    let mut e = 1u8;
    let mut scale = 2f64.powi(1 - 128);
    while e < 254 && 4.0 * scale * scale <= wanted {
        scale *= 2.0;
        e += 1;
    }
    // wanted = scale^2 * (1 + 3 p), where p is the share of blocks one exponent up.
    let p = ((wanted / (scale * scale) - 1.0) / 3.0).clamp(0.0, 1.0) as f32;
    for _ in 0..cols / 32 {
        out.push(e + u8::from(stream.unit() < p));
        out.extend(stream.next().to_le_bytes());
        out.extend(stream.next().to_le_bytes());
    }
}

/// Blocks of uniform int8 within ±127 under scales of half to one and a half times the mean.
fn q8_0_noise(stream: &mut Stream, std: f32, cols: usize, out: &mut Vec<u8>) {
    // Uniform integers within ±127 have variance (255^2 - 1) / 12; the spread of the scales
    // multiplies it by 13 / 12.
    let mean = f64::from(std) / (65_024.0 / 12.0 * 13.0 / 12.0f64).sqrt();
    for _ in 0..cols / 32 {
        let d = mean as f32 * (0.5 + stream.unit());
        out.extend(f16::from_f32(d).to_le_bytes());
        for _ in 0..4 {
            // -128 becomes 0, so that the values stay symmetric.
            let bytes = stream.next().to_le_bytes();
            out.extend(bytes.map(|b| if b == 0x80 { 0 } else { b }));
        }
    }
}

/// Blocks of random codes and small scales under d of half to one and a half times the mean (and
/// in Q4_K a dmin that makes the weights' mean 0).
fn k_noise(stream: &mut Stream, std: f32, (ty, cols): (GgmlType, usize), out: &mut Vec<u8>) {
    // Uniform codes below 16 and scales and minima below 64, where dmin = 7.5 d: E(scale^2) =
    // 1323, E(code^2) = 77.5, of both means the square is 55813.9, and the minima
    // have a variance of 341.25. In Q6_K, E(scale^2) = 5461.5 and E(code^2) = 341.5. The spread
    // of d multiplies both by 13 / 12.
    let squares = match ty {
        GgmlType::Q4K => 1323.0 * 77.5 - 55_813.9 + 56.25 * 341.25,
        _ => 5461.5 * 341.5,
    };
    let mean = (f64::from(std) / (squares * 13.0 / 12.0f64).sqrt()) as f32;
    for _ in 0..cols / 256 {
        let start = out.len();
        let d = mean * (0.5 + stream.unit());
        while out.len() < start + ty.block_bytes() {
            let left = start + ty.block_bytes() - out.len();
            out.extend(&stream.next().to_le_bytes()[..left.min(8)]);
        }
        let block = &mut out[start..];
        let scales: &[(usize, f32)] = match ty {
            GgmlType::Q4K => &[(0, d), (2, 7.5 * d)],
            _ => &[(208, d)],
        };
        for (at, scale) in scales {
            block[*at..at + 2].copy_from_slice(&f16::from_f32(*scale).to_le_bytes());
        }
    }
}
