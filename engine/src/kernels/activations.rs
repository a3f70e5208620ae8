//! Activations as the kernels take them.

/// How activations enter a dot product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// int8 in blocks of 32 against quantised weights (the default); f32 against float weights.
    Int8,
    /// f32 against dequantised weights: slow, the oracle (`--reference`).
    Reference,
}

/// A batch of activation vectors, `n` tokens of width `k`, token-major, in f32 and (when
/// `Precision::Int8` and `k` is a multiple of 32) quantised: d = amax / 127 rounded up to 8
/// significant bits, q = round half to even of x / d.
#[derive(Clone, Debug, Default)]
pub struct Activations {
    /// Tokens.
    pub n: usize,
    /// Width.
    pub k: usize,
    /// `n * k` values.
    pub f: Vec<f32>,
    /// `n * k` quantised values; empty under `Reference`.
    pub q: Vec<i8>,
    /// `n * k / 32` block scales.
    pub d: Vec<f32>,
    /// `n * k / 32` block sums of `q` (for formats with an offset).
    pub sums: Vec<i32>,
}

impl Activations {
    /// Takes `n` vectors of width `k` and quantises them as `precision` asks, re-using buffers.
    /// NaN or infinite input is quantised to d = 0 and reported by `is_finite` at the caller.
    pub fn set(&mut self, _x: &[f32], _n: usize, _k: usize, _precision: Precision) {
        todo!()
    }
}
