//! Activations as the kernels take them.

/// How activations enter a dot product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// int8 in blocks of 32 against quantised weights (the default); f32 against float weights.
    Int8,
    /// f32 against dequantised weights: slow, the oracle (`--reference`).
    Reference,
}

/// Activations of this magnitude or more, 2^34, count as overflow.
pub const MAX_ACTIVATION: f32 = 17_179_869_184.0;

/// Weights and activations under one scale.
pub(super) const BLOCK: usize = 32;

/// A block scale below 2^-100 is zero, so that no product of scales is subnormal.
const LEAST_SCALE_BIASED: i32 = 127 - 100;

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
    /// Whether a quantised block held a NaN, an infinity or a value of [`MAX_ACTIVATION`] or
    /// more; such a block has d = 0, so its products are worthless.
    pub overflow: bool,
}

impl Activations {
    /// Takes `n` vectors of width `k` and quantises them as `precision` asks, re-using buffers.
    /// NaN, infinite or too large input is quantised to d = 0 and sets `overflow`.
    ///
    /// # Panics
    /// When `x` is not `n * k` long.
    pub fn set(&mut self, x: &[f32], n: usize, k: usize, precision: Precision) {
        assert_eq!(x.len(), n * k, "{n} activation vectors of width {k}");
        self.n = n;
        self.k = k;
        self.f.clear();
        self.f.extend_from_slice(x);
        self.q.clear();
        self.d.clear();
        self.sums.clear();
        self.overflow = false;
        if precision == Precision::Reference || !k.is_multiple_of(BLOCK) {
            return;
        }
        self.q.resize(n * k, 0);
        let blocks = x.as_chunks::<BLOCK>().0;
        for (block, q) in blocks.iter().zip(self.q.as_chunks_mut::<BLOCK>().0) {
            let amax = block
                .iter()
                .fold(0, |m, x| m.max(x.to_bits() & 0x7fff_ffff));
            let overflow = amax >= MAX_ACTIVATION.to_bits();
            self.overflow |= overflow;
            let d = if overflow { 0.0 } else { block_scale(amax) };
            self.d.push(d);
            self.sums
                .push(if d == 0.0 { 0 } else { quantize(block, d, q) });
        }
    }

    /// Quantised values, scales and sums of token `t`.
    pub(super) fn token(&self, t: usize) -> (&[i8], &[f32], &[i32]) {
        let blocks = self.k / BLOCK;
        (
            &self.q[t * self.k..][..self.k],
            &self.d[t * blocks..][..blocks],
            &self.sums[t * blocks..][..blocks],
        )
    }
}

/// amax / 127 rounded up to 8 significant bits, from the bits of amax in integers alone; zero
/// when that is below 2^-100.
fn block_scale(amax_bits: u32) -> f32 {
    let biased = (amax_bits >> 23) as i32;
    if biased == 0 {
        return 0.0; // zero or subnormal
    }
    // amax = m * 2^(biased - 150), 2^23 <= m < 2^24, so m / 127 / 2^9 lies in (129, 259).
    let m = (amax_bits & 0x007f_ffff) | 0x0080_0000;
    let mut shift = 9;
    let mut mantissa = m.div_ceil(127 << shift);
    if mantissa > 255 {
        shift = 10;
        mantissa = m.div_ceil(127 << shift);
    }
    // d = mantissa * 2^(shift + biased - 150), 128 <= mantissa <= 255.
    let exponent = shift + biased - 150 + 7 + 127;
    if exponent < LEAST_SCALE_BIASED {
        return 0.0;
    }
    f32::from_bits((exponent as u32) << 23 | (mantissa & 0x7f) << 16)
}

/// q = the f32 quotient x / d, rounded half to even, within ±127; returns the sum of q.
fn quantize(block: &[f32; BLOCK], d: f32, q: &mut [i8; BLOCK]) -> i32 {
    // Adding 1.5 * 2^23 leaves no bit for a fraction, and the addition rounds half to even.
    const MAGIC: f32 = 12_582_912.0;
    let mut sum = 0;
    for (x, q) in block.iter().zip(q) {
        let rounded = (x / d + MAGIC).to_bits() as i32 - MAGIC.to_bits() as i32;
        let clamped = rounded.clamp(-127, 127);
        *q = clamped as i8;
        sum += clamped;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition in f64 and integers, without bit tricks.
    fn scale_by_definition(amax: f32) -> f64 {
        let exact = f64::from(amax) / 127.0;
        let mut unit = 2f64.powi(exact.log2().floor() as i32 - 7);
        if exact / unit < 128.0 {
            unit /= 2.0;
        }
        let mut d = (exact / unit).ceil() * unit;
        // The f64 quotient may sit a hair on either side of a representable value.
        while d * 127.0 < f64::from(amax) {
            d += unit;
        }
        while (d - unit) * 127.0 >= f64::from(amax) {
            d -= unit;
        }
        d
    }

    proptest! {
        #[test]
        fn scale_is_the_least_of_8_bits(bits in (30u32 << 23)..MAX_ACTIVATION.to_bits()) {
            let amax = f32::from_bits(bits);
            let d = block_scale(bits);
            prop_assume!(d != 0.0);
            prop_assert_eq!(f64::from(d), scale_by_definition(amax));
            prop_assert_eq!(d.to_bits() & 0xffff, 0);
        }

        #[test]
        fn quotients_round_half_to_even(x in prop::array::uniform32(-1e3f32..1e3)) {
            let mut a = Activations::default();
            a.set(&x, 1, 32, Precision::Int8);
            for (x, q) in x.iter().zip(&a.q) {
                prop_assert_eq!(i32::from(*q), (x / a.d[0]).round_ties_even() as i32);
            }
            prop_assert_eq!(a.sums[0], a.q.iter().map(|q| i32::from(*q)).sum::<i32>());
        }
    }

    #[test]
    fn edges() {
        let mut a = Activations::default();
        let mut x = [0f32; 128];
        x[0] = 127.0; // d = 1 exactly
        x[1] = 2.5;
        x[2] = -3.5;
        x[32] = 1e-40; // subnormal: the block is zero
        x[64] = f32::NAN;
        a.set(&x, 1, 128, Precision::Int8);
        assert_eq!(a.d, [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(a.q[..4], [127, 2, -4, 0]);
        assert!(a.overflow);
        assert_eq!(a.f[0], 127.0);
        a.set(&x[..64], 2, 32, Precision::Int8);
        assert!(!a.overflow);
        for big in [f32::INFINITY, MAX_ACTIVATION, -MAX_ACTIVATION] {
            x[1] = big;
            a.set(&x[..32], 1, 32, Precision::Int8);
            assert!(a.overflow && a.d[0] == 0.0, "{big}");
        }
        a.set(&x[..32], 1, 32, Precision::Reference);
        assert!(a.q.is_empty());
        a.set(&x[..20], 1, 20, Precision::Int8);
        assert!(a.q.is_empty() && a.f.len() == 20);
    }
}
