//! Blocks of 32 activations, quantised.
//!
//! First digit: d = amax / 127 rounded up to 8 significant bits, q = round half to even of x / d.
//! Second digit: what is left, x - q * d (exact in f32), in the same way with the scale d / 256;
//! all zero where that scale is below 2^-100.

/// Activations of this magnitude or more, 2^34, count as overflow.
pub const MAX_ACTIVATION: f32 = 17_179_869_184.0;

/// Weights and activations under one scale.
pub(super) const BLOCK: usize = 32;

/// A block scale below 2^-100 is zero, so that no product of scales is subnormal.
const LEAST_SCALE_BIASED: i32 = 127 - 100;

/// One digit of a block of activations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ActBlock {
    /// Values, within ±127.
    pub q: [i8; BLOCK],
    /// Scale.
    pub d: f32,
    /// The sum of the values whose index leaves 0 or 1 when divided by 4, and of the others: what
    /// an offset on the weights adds to each half of a 32-bit lane of products.
    pub halves: [i16; 2],
}

impl ActBlock {
    /// `q` under the scale `d`.
    pub fn new(q: [i8; BLOCK], d: f32) -> Self {
        let mut halves = [0; 2];
        for (i, q) in q.iter().enumerate() {
            halves[i / 2 % 2] += i16::from(*q);
        }
        Self { q, d, halves }
    }

    /// The sum of the values.
    #[inline]
    pub fn sum(&self) -> i32 {
        i32::from(self.halves[0]) + i32::from(self.halves[1])
    }

    /// The first digit of `x`; `None` where `x` holds a NaN, an infinity or a value of
    /// [`MAX_ACTIVATION`] or more.
    pub(super) fn first(x: &[f32; BLOCK]) -> Option<Self> {
        let amax = x.iter().fold(0, |m, x| m.max(x.to_bits() & 0x7fff_ffff));
        if amax >= MAX_ACTIVATION.to_bits() {
            return None;
        }
        let d = block_scale(amax);
        Some(if d == 0.0 {
            Self::default()
        } else {
            Self::new(quantize(x, d), d)
        })
    }

    /// The second digit of `x`, of which `first` is the first.
    pub(super) fn second(x: &[f32; BLOCK], first: &Self) -> Self {
        let d = first.d / 256.0;
        if d.to_bits() < (LEAST_SCALE_BIASED as u32) << 23 {
            return Self::default();
        }
        let rest = std::array::from_fn(|j| x[j] - f32::from(first.q[j]) * first.d);
        Self::new(quantize(&rest, d), d)
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

/// The f32 quotients x / d, rounded half to even, within ±127.
fn quantize(x: &[f32; BLOCK], d: f32) -> [i8; BLOCK] {
    // Adding 1.5 * 2^23 leaves no bit for a fraction, and the addition rounds half to even.
    const MAGIC: f32 = 12_582_912.0;
    x.map(|x| {
        let rounded = (x / d + MAGIC).to_bits() as i32 - MAGIC.to_bits() as i32;
        rounded.clamp(-127, 127) as i8
    })
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
            let block = ActBlock::first(&x).unwrap();
            for (x, q) in x.iter().zip(&block.q) {
                prop_assert_eq!(i32::from(*q), (x / block.d).round_ties_even() as i32);
            }
            let sum = |part: usize| -> i16 {
                let of = |i: usize| i % 4 / 2 == part;
                (0..32).filter(|&i| of(i)).map(|i| i16::from(block.q[i])).sum()
            };
            prop_assert_eq!(block.halves, [sum(0), sum(1)]);
            prop_assert_eq!(block.sum(), block.q.iter().map(|q| i32::from(*q)).sum::<i32>());
        }

        #[test]
        fn two_digits_are_256_times_finer(x in prop::array::uniform32(-1e3f32..1e3)) {
            let first = ActBlock::first(&x).unwrap();
            let second = ActBlock::second(&x, &first);
            prop_assert_eq!(second.d, first.d / 256.0);
            for (i, x) in x.iter().enumerate() {
                let value = |digit: &ActBlock| f64::from(digit.q[i]) * f64::from(digit.d);
                let error = (value(&first) + value(&second) - f64::from(*x)).abs();
                // Half a step, or a whole one where what was left met the end of the digit.
                prop_assert!(error <= f64::from(second.d), "{} of {}", error, x);
            }
        }
    }

    #[test]
    fn edges() {
        let mut x = [0f32; 32];
        x[0] = 127.0; // d = 1 exactly
        x[1] = 2.5;
        x[2] = -3.5;
        let first = ActBlock::first(&x).unwrap();
        assert_eq!((first.d, &first.q[..4]), (1.0, &[127, 2, -4, 0][..]));
        let second = ActBlock::second(&x, &first);
        assert_eq!(
            (second.d, &second.q[..4]),
            (1.0 / 256.0, &[0, 127, 127, 0][..])
        );
        for big in [
            f32::NAN,
            f32::INFINITY,
            -f32::INFINITY,
            MAX_ACTIVATION,
            -MAX_ACTIVATION,
        ] {
            x[1] = big;
            assert_eq!(ActBlock::first(&x), None, "{big}");
        }
        // Subnormal: the block is zero.
        let tiny = [1e-40; 32];
        assert_eq!(ActBlock::first(&tiny), Some(ActBlock::default()));
    }
}
