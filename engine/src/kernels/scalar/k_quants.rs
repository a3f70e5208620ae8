//! Q4_K and Q5_K weights: w = (dw * scale) * code - (dmin * min), scale and min six-bit integers of
//! each run of 32.
//!
//! A run: isum = sum of code * q and sumq = sum of q, exact. x = isum * d and y = sumq * d, both
//! exact in Q4_K (16 or 12 bits times 8); in Q5_K, where isum can have 17 bits, x rounds.
//! dw * scale and dmin * min are exact (11 bits times 6). Then
//! `acc = acc - (dmin * min) * y`, and `acc = acc + (dw * scale) * x`, each fused: rounded once.
//! Runs join in k order, from acc = +0.

use half::f16;

use super::quantised::Format;
use crate::formats::blocks::{KPart, q4_k_part, q5_k_part};
use crate::kernels::activations::ActBlock;

pub(super) struct Q4K;

impl Format for Q4K {
    const BYTES: usize = 144;
    const PARTS: usize = 8;

    fn step(acc: f32, block: &[u8], part: usize, x: &ActBlock) -> f32 {
        let (block, _) = block.as_chunks();
        step(acc, &block[0][..4], q4_k_part(&block[0], part), x)
    }
}

pub(super) struct Q5K;

impl Format for Q5K {
    const BYTES: usize = 176;
    const PARTS: usize = 8;

    fn step(acc: f32, block: &[u8], part: usize, x: &ActBlock) -> f32 {
        let (block, _) = block.as_chunks();
        step(acc, &block[0][..4], q5_k_part(&block[0], part), x)
    }
}

fn step(acc: f32, scales: &[u8], part: KPart, x: &ActBlock) -> f32 {
    let terms = part.q.iter().zip(&x.q);
    let isum: i32 = terms.map(|(w, q)| i32::from(*w) * i32::from(*q)).sum();
    let dw = f16::from_le_bytes([scales[0], scales[1]]).to_f32();
    let dmin = f16::from_le_bytes([scales[2], scales[3]]).to_f32();
    let acc = (-dmin * f32::from(part.min)).mul_add(x.sum() as f32 * x.d, acc);
    (dw * f32::from(part.scale)).mul_add(isum as f32 * x.d, acc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar::quantised::tests::dot;

    #[test]
    fn rows_by_hand() {
        let q: Vec<i8> = (0..=255).map(|i| (i % 32) as i8).collect();
        let isum: i32 = (0..32).sum(); // of each run, for codes of 1
        let mut block = vec![0; Q4K::BYTES];
        block[..4].copy_from_slice(&[0x00, 0x3c, 0x00, 0x38]); // 1.0, 0.5
        block[4] = 3; // scale of run 0
        block[4 + 5] = 2; // minimum of run 1
        block[16..48].fill(0x21); // codes 1 in run 0, 2 in run 1 (of scale 0)
        let expected = (3 * isum) as f32 * 2.0 - isum as f32 * 2.0;
        assert_eq!(dot::<Q4K>(&block, &q, 2.0), expected);
        let mut five = block[..16].to_vec();
        five.extend([1; 32]); // the fifth bit in run 0
        five.extend(&block[16..]);
        let expected = (3 * 17 * isum) as f32 * 2.0 - isum as f32 * 2.0;
        assert_eq!(dot::<Q5K>(&five, &q, 2.0), expected);
    }
}
