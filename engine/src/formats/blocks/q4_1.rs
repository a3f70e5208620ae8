//! Q4_1: an f16 scale d and an f16 minimum m, then 16 bytes of nibbles in Q4_0's order; a weight
//! is nibble * d + m, rounded after each operation (ggml-common.h `block_q4_1`).

use half::f16;

use super::floats::f16_at;

pub(super) const BYTES: usize = 20;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<32>().0)
    {
        let d = f16_at(block);
        let m = f16_at(&block[2..]);
        for (j, byte) in block[4..].iter().enumerate() {
            out[j] = f32::from(byte & 15) * d + m;
            out[j + 16] = f32::from(byte >> 4) * d + m;
        }
    }
}

/// `quantize_row_q4_1_ref`: the smallest value becomes nibble 0, the largest nibble 15.
pub(super) fn quantize(row: &[f32], out: &mut Vec<u8>) {
    for block in row.as_chunks::<32>().0 {
        let min = block.iter().copied().fold(f32::INFINITY, f32::min);
        let max = block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let d = (max - min) / 15.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        out.extend(f16::from_f32(d).to_le_bytes());
        out.extend(f16::from_f32(min).to_le_bytes());
        let nibble = |x: f32| (((x - min) * inverse + 0.5) as i8).clamp(0, 15) as u8;
        out.extend((0..16).map(|j| nibble(block[j]) | nibble(block[j + 16]) << 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_by_hand() {
        let mut bytes = vec![0x00, 0x38, 0x00, 0xbc]; // 0.5, -1.0
        bytes.extend((0..16).map(|j| j | (15 - j) << 4));
        let mut out = [0.0; 32];
        dequantize(&bytes, &mut out);
        for j in 0..16 {
            assert_eq!(out[j], j as f32 * 0.5 - 1.0);
            assert_eq!(out[j + 16], (15 - j) as f32 * 0.5 - 1.0);
        }
    }

    #[test]
    fn grid_values_survive() {
        let row: Vec<f32> = (0..32).map(|i| (i % 16) as f32 * 0.5 - 3.0).collect();
        let mut bytes = Vec::new();
        quantize(&row, &mut bytes);
        let mut back = vec![0.0; 32];
        dequantize(&bytes, &mut back);
        assert_eq!(row, back);
    }
}
