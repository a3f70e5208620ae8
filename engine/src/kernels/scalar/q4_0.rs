//! Q4_0 weights: as Q8_0, with w = nibble - 8.

use half::f16;

use super::quantised::Format;
use crate::kernels::activations::ActBlock;

pub(super) struct Q4_0;

impl Format for Q4_0 {
    const BYTES: usize = 18;

    fn step(acc: f32, block: &[u8], _: usize, x: &ActBlock) -> f32 {
        let mut isum = 0i32;
        for j in 0..16 {
            let byte = block[2 + j];
            isum += (i32::from(byte & 15) - 8) * i32::from(x.q[j]);
            isum += (i32::from(byte >> 4) - 8) * i32::from(x.q[j + 16]);
        }
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
        let mut row = vec![0x00, 0x3c]; // 1.0
        row.extend([0x0f; 16]); // low 15 - 8 = 7, high 0 - 8 = -8
        let q: Vec<i8> = (0..32).collect();
        let low: i32 = (0..16).sum::<i32>() * 7;
        let high: i32 = (16..32).sum::<i32>() * 8;
        assert_eq!(dot::<Q4_0>(&row, &q, 2.0), (low - high) as f32 * 2.0);
    }
}
