//! Q8_0 weights.
//!
//! A block of 32: isum = sum of w * q, an exact i32 below 2^20 in magnitude, exact as f32. The
//! scale s = dw * d of 11 and 8 significant bits is exact in f32. p = isum * s rounds once,
//! `acc = acc + p` rounds once; the two are never fused. Blocks join in k order, from acc = +0.

use half::f16;

use super::quantised::Format;
use crate::kernels::activations::ActBlock;

pub(super) struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = 34;

    fn step(acc: f32, block: &[u8], _: usize, x: &ActBlock) -> f32 {
        let isum: i32 = block[2..]
            .iter()
            .zip(&x.q)
            .map(|(w, q)| i32::from(*w as i8) * i32::from(*q))
            .sum();
        let s = f16::from_le_bytes([block[0], block[1]]).to_f32() * x.d;
        let p = isum as f32 * s;
        acc + p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar::quantised::tests::dot;

    #[test]
    fn a_row_by_hand() {
        let mut row = vec![0x00, 0x38]; // 0.5
        row.extend([0x80u8; 32]); // -128
        let q = [127i8; 32];
        assert_eq!(
            dot::<Q8_0>(&row, &q, 0.25),
            (-128 * 127 * 32) as f32 * 0.125
        );
    }
}
