//! Q8_0: an f16 scale, then 32 int8 (ggml-common.h `block_q8_0`).

use half::f16;

use super::floats::f16_at;

pub(super) const BYTES: usize = 34;

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<32>().0)
    {
        let d = f16_at(block);
        for (o, q) in out.iter_mut().zip(&block[2..]) {
            *o = f32::from(*q as i8) * d;
        }
    }
}

/// `quantize_row_q8_0_ref`: d = amax / 127 in f32, q = round(x / d) half away from zero; d is
/// stored as f16 after the quotients are taken.
pub(super) fn quantize(row: &[f32], out: &mut Vec<u8>) {
    for block in row.as_chunks::<32>().0 {
        let amax = block.iter().fold(0f32, |m, x| m.max(x.abs()));
        let d = amax / 127.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        out.extend(f16::from_f32(d).to_le_bytes());
        out.extend(block.iter().map(|x| (x * inverse).round() as i8 as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_by_hand() {
        let mut bytes = vec![0x00, 0x38]; // 0.5
        bytes.extend((0..32).map(|i| (i - 16) as i8 as u8));
        let mut out = [0.0; 32];
        dequantize(&bytes, &mut out);
        for (i, o) in out.iter().enumerate() {
            assert_eq!(*o, (i as f32 - 16.0) * 0.5);
        }
    }

    #[test]
    fn quantizing_keeps_each_value_within_half_a_step() {
        let row: Vec<f32> = (0..64)
            .map(|i| ((i * 37 % 64) as f32 - 31.5) / 8.0)
            .collect();
        let mut bytes = Vec::new();
        quantize(&row, &mut bytes);
        let mut back = vec![0.0; 64];
        dequantize(&bytes, &mut back);
        for (x, y) in row.iter().zip(&back) {
            assert!((x - y).abs() <= 4.0 / 127.0 * 0.51, "{x} became {y}");
        }
    }
}
