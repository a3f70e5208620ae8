//! Q4_1 weights: w = nibble * dw + m.
//!
//! A block of 32: isum = sum of nibble * q and sumq = sum of q, exact. p1 = isum * (dw * d) and
//! p2 = sumq * (m * d), where both scales are exact and each product rounds once; then
//! `acc = acc + (p1 + p2)`, each addition rounded, nothing fused. Blocks join in k order, from
//! acc = +0.

use half::f16;

use super::quantised::Format;
use crate::kernels::activations::ActBlock;

pub(super) struct Q4_1;

impl Format for Q4_1 {
    const BYTES: usize = 20;

    fn step(acc: f32, block: &[u8], _: usize, x: &ActBlock) -> f32 {
        let mut isum = 0i32;
        for j in 0..16 {
            let byte = block[4 + j];
            isum += i32::from(byte & 15) * i32::from(x.q[j]);
            isum += i32::from(byte >> 4) * i32::from(x.q[j + 16]);
        }
        let dw = f16::from_le_bytes([block[0], block[1]]).to_f32();
        let m = f16::from_le_bytes([block[2], block[3]]).to_f32();
        let p1 = isum as f32 * (dw * x.d);
        let p2 = x.sum() as f32 * (m * x.d);
        acc + (p1 + p2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar::quantised::tests::dot;

    #[test]
    fn a_row_by_hand() {
        let mut row = vec![0x00, 0x3c, 0x00, 0xc0]; // 1.0, -2.0
        row.extend([0x03; 16]); // low 3, high 0
        let q: Vec<i8> = (0..32).collect();
        let isum: i32 = (0..16).sum::<i32>() * 3;
        let sumq: i32 = (0..32).sum();
        assert_eq!(dot::<Q4_1>(&row, &q, 0.5), (isum - 2 * sumq) as f32 * 0.5);
    }
}
