//! Q4_0 weights: as Q8_0, with w = nibble - 8.

use half::f16;

const BYTES: usize = 18;

pub(super) fn dot(row: &[u8], q: &[i8], d: &[f32]) -> f32 {
    let mut acc = 0f32;
    let blocks = row
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(q.as_chunks::<32>().0)
        .zip(d);
    for ((block, q), d) in blocks {
        let mut isum = 0i32;
        for j in 0..16 {
            let byte = block[2 + j];
            isum += (i32::from(byte & 15) - 8) * i32::from(q[j]);
            isum += (i32::from(byte >> 4) - 8) * i32::from(q[j + 16]);
        }
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
        let mut row = vec![0x00, 0x3c]; // 1.0
        row.extend([0x0f; 16]); // low 15 - 8 = 7, high 0 - 8 = -8
        let q: Vec<i8> = (0..32).collect();
        let low: i32 = (0..16).sum::<i32>() * 7;
        let high: i32 = (16..32).sum::<i32>() * 8;
        assert_eq!(dot(&row, &q, &[2.0]), (low - high) as f32 * 2.0);
    }
}
