//! Q4_0: an f16 scale, then 16 bytes of nibbles; the low nibble of byte j is weight j, the high
//! one weight j + 16; a weight is (nibble - 8) * scale (ggml-common.h `block_q4_0`).

use half::f16;

use super::floats::f16_at;

pub(super) const BYTES: usize = 18;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<32>().0)
    {
        let d = f16_at(block);
        for (j, byte) in block[2..].iter().enumerate() {
            out[j] = f32::from((byte & 15) as i8 - 8) * d;
            out[j + 16] = f32::from((byte >> 4) as i8 - 8) * d;
        }
    }
}

/// `quantize_row_q4_0_ref`: the value of largest magnitude becomes nibble 0, that is -8.
pub(super) fn quantize(row: &[f32], out: &mut Vec<u8>) {
    for block in row.as_chunks::<32>().0 {
        let mut max = 0f32;
        for x in block {
            if x.abs() > max.abs() {
                max = *x;
            }
        }
        let d = max / -8.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        out.extend(f16::from_f32(d).to_le_bytes());
        let nibble = |x: f32| ((x * inverse + 8.5) as i8).clamp(0, 15) as u8;
        out.extend((0..16).map(|j| nibble(block[j]) | nibble(block[j + 16]) << 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_by_hand() {
        let mut bytes = vec![0x00, 0x40]; // 2.0
        bytes.extend((0..16).map(|j| j | (15 - j) << 4));
        let mut out = [0.0; 32];
        dequantize(&bytes, &mut out);
        for j in 0..16 {
            assert_eq!(out[j], (j as f32 - 8.0) * 2.0);
            assert_eq!(out[j + 16], (7.0 - j as f32) * 2.0);
        }
    }

    #[test]
    fn grid_values_survive() {
        let row: Vec<f32> = (0..32).map(|i| ((i % 16) as f32 - 8.0) * 0.25).collect();
        let mut bytes = Vec::new();
        quantize(&row, &mut bytes);
        let mut back = vec![0.0; 32];
        dequantize(&bytes, &mut back);
        assert_eq!(row, back);
    }
}
