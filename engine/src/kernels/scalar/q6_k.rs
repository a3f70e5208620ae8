//! Q6_K weights: w = (dw * scale) * code, scale a signed byte of each half of 32 weights.
//!
//! 32 weights: isum = scale0 * (sum of code * q over the first half) + scale1 * (the second's), an
//! exact i32 below 2^24 in magnitude (2 * 128 * 16 * 32 * 127), exact as f32, and so is each of its
//! two terms. The scale s = dw * d of 11 and 8 significant bits is exact. `acc = acc + isum * s`,
//! fused: rounded once. Blocks of 32 join in k order, from acc = +0.

use half::f16;

use super::quantised::Format;
use crate::formats::blocks::q6_k_part;
use crate::kernels::activations::ActBlock;

pub(super) struct Q6K;

impl Format for Q6K {
    const BYTES: usize = 210;
    const PARTS: usize = 8;

    fn step(acc: f32, block: &[u8], part: usize, x: &ActBlock) -> f32 {
        let (block, _) = block.as_chunks();
        let part = q6_k_part(&block[0], part);
        let mut isum = 0i32;
        for (half, scale) in part.scale.into_iter().enumerate() {
            let terms = part.q[16 * half..][..16].iter().zip(&x.q[16 * half..]);
            let sum: i32 = terms.map(|(w, q)| i32::from(*w) * i32::from(*q)).sum();
            isum += i32::from(scale) * sum;
        }
        let s = f16::from_le_bytes([block[0][208], block[0][209]]).to_f32() * x.d;
        (isum as f32).mul_add(s, acc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar::quantised::tests::dot;

    #[test]
    fn a_row_by_hand() {
        let mut block = vec![0; Q6K::BYTES];
        block[208..].copy_from_slice(&[0x00, 0x38]); // 0.5
        block[192] = 0x80; // -128 for the first 16 weights, codes 0 - 32
        block[192 + 15] = 3; // for the last 16
        let mut q = vec![127i8; 256];
        q[240..].fill(-2);
        let (first, last) = (-128 * 16 * -32 * 127, 3 * 16 * -32 * -2);
        let expected = (first as f32 * 0.125) + last as f32 * 0.125;
        assert_eq!(dot::<Q6K>(&block, &q, 0.25), expected);
    }
}
