//! `exp` and `sigmoid` in f32 from additions, multiplications and one division, identical on
//! every machine. Range reduction after Cody and Waite: e^x = 2^n e^r with |r| <= ln 2 / 2, and
//! e^r by its Taylor polynomial of degree 7.

/// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, halves to even.
pub(super) const ROUNDER: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has 9 trailing zero bits, so n times it is exact.
pub(super) const LN2_HIGH: f32 = 355.0 / 512.0;
pub(super) const LN2_LOW: f32 = -2.121_944_4e-4;

/// Coefficients of e^r's polynomial, from r^7 down to r^2.
pub(super) const TAYLOR: [f32; 6] = [
    1.0 / 5040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];
/// e^x is 0 below the first and infinite above the second.
pub(super) const ENDS: [f32; 2] = [-87.0, 88.722_84];

/// e^x, within 1.25 units in the last place. Below -87 the result is 0 (no denormals), above 88.7
/// infinity; NaN stays NaN.
#[inline]
pub fn exp(x: f32) -> f32 {
    let clamped = x.clamp(ENDS[0], ENDS[1]);
    let rounded = clamped * std::f32::consts::LOG2_E + ROUNDER;
    let n = rounded - ROUNDER;
    let n_int = rounded.to_bits() as i32 - ROUNDER.to_bits() as i32;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = TAYLOR[0];
    for coefficient in &TAYLOR[1..] {
        p = p * r + coefficient;
    }
    let e = (p * r) * r + r + 1.0;
    // 2^n in two steps, because n = 128 has no f32 of its own.
    let half = n_int >> 1;
    let power = |k: i32| f32::from_bits(((k + 127) << 23) as u32);
    let y = e * power(half) * power(n_int - half);
    // Three selections rather than branches, so that loops over `exp` run in SIMD lanes.
    let y = if x < ENDS[0] { 0.0 } else { y };
    let y = if x > ENDS[1] { f32::INFINITY } else { y };
    if x.is_nan() { x } else { y }
}

/// 1 / (1 + e^-x), by way of e^-|x| so that nothing overflows.
#[inline]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    let small = if x < 0.0 { e } else { 1.0 };
    small / (1.0 + e)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units of the last place of the f32 next to `exact`.
    fn ulps(got: f32, exact: f64) -> f64 {
        let near = exact as f32;
        let ulp = f64::from(f32::from_bits(near.to_bits() + 1)) - f64::from(near);
        ((f64::from(got) - exact) / ulp).abs()
    }

    #[test]
    fn exp_is_within_one_and_a_quarter_ulps() {
        let mut worst = 0.0f64;
        for i in -870_000..=887_000 {
            let x = i as f32 * 1e-4;
            worst = worst.max(ulps(exp(x), libm::exp(f64::from(x))));
        }
        assert!(worst < 1.25, "worst error {worst} ulp");
    }

    #[test]
    fn sigmoid_is_within_two_and_a_half_ulps() {
        let mut worst = 0.0f64;
        for i in -800_000..=800_000 {
            let x = i as f32 * 1e-4;
            let exact = 1.0 / (1.0 + libm::exp(-f64::from(x)));
            worst = worst.max(ulps(sigmoid(x), exact));
        }
        assert!(worst < 2.5, "worst error {worst} ulp");
    }

    #[test]
    fn the_ends_are_as_documented() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(89.0), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(sigmoid(0.0), 0.5);
        assert_eq!(sigmoid(f32::INFINITY), 1.0);
        assert_eq!(sigmoid(f32::NEG_INFINITY), 0.0);
        assert!(sigmoid(f32::NAN).is_nan());
    }
}
