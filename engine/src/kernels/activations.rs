//! Activations as the kernels take them.

/// How activations enter a dot product with quantised weights. (Float weights always meet f32.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// One int8 digit in blocks of 32.
    Int8,
    /// Two int8 digits, the second for what the first leaves, 256 times finer.
    Int16,
    /// f32 against dequantised weights: slow, the oracle (`--reference`).
    Reference,
}

impl Precision {
    /// int8 digits of an activation.
    pub(super) fn digits(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Int16 => 2,
            Self::Reference => 0,
        }
    }
}

/// Activations of this magnitude or more, 2^34, count as overflow.
pub const MAX_ACTIVATION: f32 = 17_179_869_184.0;

/// Weights and activations under one scale.
pub(super) const BLOCK: usize = 32;

/// A block scale below 2^-100 is zero, so that no product of scales is subnormal.
const LEAST_SCALE_BIASED: i32 = 127 - 100;

/// One int8 digit of a batch of activation vectors.
#[derive(Clone, Debug, Default)]
pub struct Digit {
    /// `n * k` quantised values; empty where the digit was not asked for.
    pub q: Vec<i8>,
    /// `n * k / 32` block scales.
    pub d: Vec<f32>,
    /// `n * k / 32` block sums of `q` (for formats with an offset).
    pub sums: Vec<i32>,
}

/// A block of one digit.
#[derive(Clone, Copy)]
pub(super) struct ActBlock<'a> {
    pub(super) q: &'a [i8; BLOCK],
    pub(super) d: f32,
    pub(super) sumq: i32,
}

impl Digit {
    fn clear(&mut self) {
        self.q.clear();
        self.d.clear();
        self.sums.clear();
    }

    /// Block `i` of the batch.
    #[inline]
    pub(super) fn block(&self, i: usize) -> ActBlock<'_> {
        ActBlock {
            q: &self.q.as_chunks::<BLOCK>().0[i],
            d: self.d[i],
            sumq: self.sums[i],
        }
    }
}

/// A batch of activation vectors, `n` tokens of width `k`, token-major, in f32 and (unless under
/// `Precision::Reference`, and when `k` is a multiple of 32) quantised.
///
/// First digit: d = amax / 127 rounded up to 8 significant bits, q = round half to even of x / d.
/// Second digit: what is left, x - q * d (exact in f32), in the same way with the scale d / 256;
/// all zero where that scale is below 2^-100.
#[derive(Clone, Debug, Default)]
pub struct Activations {
    /// Tokens.
    pub n: usize,
    /// Width.
    pub k: usize,
    /// `n * k` values.
    pub f: Vec<f32>,
    /// The first and the second digit.
    pub digits: [Digit; 2],
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
        self.digits.iter_mut().for_each(Digit::clear);
        self.overflow = false;
        if precision == Precision::Reference || !k.is_multiple_of(BLOCK) {
            return;
        }
        self.first_digit();
        if precision == Precision::Int16 {
            self.second_digit();
        }
    }

    fn first_digit(&mut self) {
        let digit = &mut self.digits[0];
        digit.q.resize(self.f.len(), 0);
        let blocks = self.f.as_chunks::<BLOCK>().0;
        for (block, q) in blocks.iter().zip(digit.q.as_chunks_mut::<BLOCK>().0) {
            let amax = block
                .iter()
                .fold(0, |m, x| m.max(x.to_bits() & 0x7fff_ffff));
            let overflow = amax >= MAX_ACTIVATION.to_bits();
            self.overflow |= overflow;
            let d = if overflow { 0.0 } else { block_scale(amax) };
            let sum = if d == 0.0 { 0 } else { quantize(block, d, q) };
            digit.d.push(d);
            digit.sums.push(sum);
        }
    }

    fn second_digit(&mut self) {
        let [first, second] = &mut self.digits;
        second.q.resize(self.f.len(), 0);
        let blocks = self.f.as_chunks::<BLOCK>().0;
        let out = second.q.as_chunks_mut::<BLOCK>().0;
        for (i, (block, q)) in blocks.iter().zip(out).enumerate() {
            let before = first.block(i);
            let d = before.d / 256.0;
            let mut sum = 0;
            let worth = d.to_bits() >= (LEAST_SCALE_BIASED as u32) << 23;
            if worth {
                let rest = std::array::from_fn(|j| block[j] - f32::from(before.q[j]) * before.d);
                sum = quantize(&rest, d, q);
            }
            second.d.push(if worth { d } else { 0.0 });
            second.sums.push(sum);
        }
    }

    /// What a kernel walks through under `precision`.
    pub fn digits(&self, precision: Precision) -> &[Digit] {
        &self.digits[..precision.digits()]
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
            let digit = &a.digits[0];
            for (x, q) in x.iter().zip(&digit.q) {
                prop_assert_eq!(i32::from(*q), (x / digit.d[0]).round_ties_even() as i32);
            }
            prop_assert_eq!(digit.sums[0], digit.q.iter().map(|q| i32::from(*q)).sum::<i32>());
            prop_assert!(a.digits[1].q.is_empty());
        }

        #[test]
        fn two_digits_are_256_times_finer(x in prop::array::uniform32(-1e3f32..1e3)) {
            let mut a = Activations::default();
            a.set(&x, 1, 32, Precision::Int16);
            let [first, second] = &a.digits;
            prop_assert_eq!(second.d[0], first.d[0] / 256.0);
            prop_assert_eq!(second.sums[0], second.q.iter().map(|q| i32::from(*q)).sum::<i32>());
            for (i, x) in x.iter().enumerate() {
                let value = |digit: &Digit| f64::from(digit.q[i]) * f64::from(digit.d[0]);
                let error = (value(first) + value(second) - f64::from(*x)).abs();
                // Half a step, or a whole one where what was left met the end of the digit.
                prop_assert!(error <= f64::from(second.d[0]), "{} of {}", error, x);
            }
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
        a.set(&x, 1, 128, Precision::Int16);
        assert_eq!(a.digits[1].d, [1.0 / 256.0, 0.0, 0.0, 0.0]);
        assert_eq!(a.digits[1].q[..4], [0, 127, 127, 0]);
        assert_eq!(a.digits[0].d, [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(a.digits[0].q[..4], [127, 2, -4, 0]);
        assert!(a.overflow);
        assert_eq!(a.f[0], 127.0);
        a.set(&x[..64], 2, 32, Precision::Int8);
        assert!(!a.overflow);
        for big in [f32::INFINITY, MAX_ACTIVATION, -MAX_ACTIVATION] {
            x[1] = big;
            a.set(&x[..32], 1, 32, Precision::Int8);
            assert!(a.overflow && a.digits[0].d[0] == 0.0, "{big}");
        }
        a.set(&x[..32], 1, 32, Precision::Reference);
        assert!(a.digits[0].q.is_empty());
        a.set(&x[..20], 1, 20, Precision::Int8);
        assert!(a.digits[0].q.is_empty() && a.f.len() == 20);
    }
}
