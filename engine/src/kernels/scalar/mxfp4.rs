//! MXFP4 weights.
//!
//! A block of 32: isum = sum of (doubled E2M1 value) * q, an exact i32 below 2^16 in magnitude.
//! The scale s = d * 2^(e - 128) is made by adding e - 128 to the exponent of the activation
//! scale d; it has 8 significant bits, and is 0 below 2^-100. So isum * s is exact in f32, and
//! `acc = acc + isum * s` rounds once, fused or not. Blocks join in k order, from acc = +0.
//!
//! Bounds: d < 2^28 (checked where data comes in) and e <= 228 (checked when a file is loaded or
//! packed), so s cannot overflow.

use super::quantised::Format;
use crate::formats::blocks::MXFP4_DOUBLED;
use crate::kernels::activations::ActBlock;

/// The bits of 2^-100.
pub(in crate::kernels) const LEAST_SCALE_BITS: i32 = (127 - 100) << 23;

pub(super) struct Mxfp4;

impl Format for Mxfp4 {
    const BYTES: usize = 17;

    fn step(acc: f32, block: &[u8], _: usize, x: &ActBlock) -> f32 {
        let mut isum = 0i32;
        for j in 0..16 {
            let byte = block[1 + j];
            isum += i32::from(MXFP4_DOUBLED[usize::from(byte & 15)]) * i32::from(x.q[j]);
            isum += i32::from(MXFP4_DOUBLED[usize::from(byte >> 4)]) * i32::from(x.q[j + 16]);
        }
        acc + isum as f32 * scale(x.d, block[0])
    }
}

/// d * 2^(e - 128) from integer exponents. (When d is 0 the result does not matter: all q are 0.)
fn scale(d: f32, e: u8) -> f32 {
    let bits = (d.to_bits() as i32).wrapping_add((i32::from(e) - 128) << 23);
    if bits < LEAST_SCALE_BITS {
        0.0
    } else {
        f32::from_bits(bits as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar::quantised::tests::dot;

    #[test]
    fn scales_shift_exponents() {
        assert_eq!(scale(1.5, 128), 1.5);
        assert_eq!(scale(1.5, 118), 1.5 / 1024.0);
        assert_eq!(scale(1.0, 28), 2f32.powi(-100));
        assert_eq!(scale(1.0, 27), 0.0);
        assert_eq!(scale(2f32.powi(27), 228), 2f32.powi(127));
        assert_eq!(scale(2f32.powi(-100), 0), 0.0);
    }

    #[test]
    fn a_row_by_hand() {
        // One block: scale 2^-1, low nibbles 7 (12), high nibbles 9 (-1).
        let mut row = vec![127u8];
        row.extend([0x97; 16]);
        let q: Vec<i8> = (1..=32).collect();
        let low: i32 = (1..=16).sum::<i32>() * 12;
        let high: i32 = (17..=32).sum::<i32>();
        assert_eq!(dot::<Mxfp4>(&row, &q, 0.25), (low - high) as f32 * 0.125);
    }
}
