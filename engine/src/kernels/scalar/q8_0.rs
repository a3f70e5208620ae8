//! Q8_0 weights.
//!
//! A block of 32: isum = sum of w * q, an exact i32 below 2^20 in magnitude, exact as f32. The
//! scale s = dw * d of 11 and 8 significant bits is exact in f32. p = isum * s rounds once,
//! `acc = acc + p` rounds once; the two are never fused. Blocks join in k order, from acc = +0.

use half::f16;

const BYTES: usize = 34;

pub(super) fn dot(row: &[u8], q: &[i8], d: &[f32]) -> f32 {
    let mut acc = 0f32;
    let blocks = row
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(q.as_chunks::<32>().0)
        .zip(d);
    for ((block, q), d) in blocks {
        let isum: i32 = block[2..]
            .iter()
            .zip(q)
            .map(|(w, q)| i32::from(*w as i8) * i32::from(*q))
            .sum();
        let s = f16::from_le_bytes([block[0], block[1]]).to_f32() * d;
        let p = isum as f32 * s;
        acc += p;
    }
    acc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_by_hand() {
        let mut row = vec![0x00, 0x38]; // 0.5
        row.extend([0x80u8; 32]); // -128
        let q = [127i8; 32];
        assert_eq!(dot(&row, &q, &[0.25]), (-128 * 127 * 32) as f32 * 0.125);
    }
}
