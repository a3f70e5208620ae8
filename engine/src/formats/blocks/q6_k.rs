//! Q6_K: 256 weights of six bits in 16 runs of 16 with a signed eight-bit scale each, under one
//! f16 scale d; a weight is d * scale * (code - 32) (ggml-common.h `block_q6_K`).
//!
//! 128 bytes of low nibbles, 64 bytes of high pairs of bits, 16 scales, then d. Weight
//! 128 h + 32 g + j (g below 4, j below 32) has its low bits in byte 64 h + 32 (g mod 2) + j, in
//! the high nibble for g of 2 or 3, and its high bits in byte 32 h + j of the pairs, from bit 2 g
//! on.

use half::f16;

use super::floats::f16_at;
use super::k_scales::SUPER;

pub(super) const BYTES: usize = 210;
/// Where the pairs of high bits, the scales and d begin.
pub(super) const HIGH: usize = 128;
const SCALES: usize = 192;
pub(super) const D: usize = 208;

/// 32 weights: weight j is `d * scale[j / 16] * q[j]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Q6Part {
    /// Codes less 32.
    pub q: [i8; 32],
    /// Of each half.
    pub scale: [i8; 2],
}

/// Weights 32 i to 32 i + 31 of a super-block.
pub fn q6_k_part(block: &[u8; BYTES], i: usize) -> Q6Part {
    let (h, g) = (i / 4, i % 4);
    let low = &block[64 * h + 32 * (g % 2)..];
    let high = &block[HIGH + 32 * h..];
    let q = std::array::from_fn(|j| {
        let code = (low[j] >> (4 * (g / 2))) & 15 | ((high[j] >> (2 * g)) & 3) << 4;
        code as i8 - 32
    });
    let scale = [0, 1].map(|half| block[SCALES + 2 * i + half] as i8);
    Q6Part { q, scale }
}

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<SUPER>().0) {
        let d = f16_at(&block[D..]);
        for (i, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let part = q6_k_part(block, i);
            for (j, (o, q)) in out.iter_mut().zip(part.q).enumerate() {
                *o = d * f32::from(part.scale[j / 16]) * f32::from(q);
            }
        }
    }
}

/// The value of largest magnitude of a run becomes code 0, that is -32, and the largest of these
/// scales -128 times d. (ggml searches for the scales that fit best.)
pub(super) fn quantize(row: &[f32], out: &mut Vec<u8>) {
    let largest = |values: &[f32]| {
        let larger = |most: f32, &x: &f32| if x.abs() > most.abs() { x } else { most };
        values.iter().fold(0f32, larger)
    };
    for row in row.as_chunks::<SUPER>().0 {
        let runs = row.as_chunks::<16>().0;
        let steps: [f32; 16] = std::array::from_fn(|i| largest(&runs[i]) / -32.0);
        let unit = f16::from_f32(largest(&steps) / -128.0);
        let d = unit.to_f32();
        let quotient = |step: f32| (step / d).round().clamp(-128.0, 127.0) as i8;
        let scales = if d == 0.0 {
            [0; 16]
        } else {
            steps.map(quotient)
        };
        let mut codes = [32u8; SUPER];
        for ((run, scale), codes) in runs.iter().zip(scales).zip(codes.as_chunks_mut::<16>().0) {
            let step = d * f32::from(scale);
            for (x, code) in run.iter().zip(codes) {
                if step != 0.0 {
                    *code = ((x / step).round().clamp(-32.0, 31.0) + 32.0) as u8;
                }
            }
        }
        for half in codes.as_chunks::<128>().0 {
            out.extend((0..64).map(|j| (half[j] & 15) | (half[j + 64] & 15) << 4));
        }
        for half in codes.as_chunks::<128>().0 {
            let high = |j: usize| (0..4).fold(0, |b, g| b | (half[32 * g + j] >> 4) << (2 * g));
            out.extend((0..32).map(high));
        }
        out.extend(scales.map(|s| s as u8));
        out.extend(unit.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::k_scales::tests::keeps_values;
    use super::*;

    #[test]
    fn a_block_by_hand() {
        let mut block = [0; BYTES];
        block[D..].copy_from_slice(&[0x00, 0x38]); // 0.5
        block[SCALES + 2 * 6 + 1] = 0xfd; // -3 for weights 208 to 223
        // Weight 208 + 5 = 128 + 2 * 32 + 16 + 5: byte 64 + 21, high nibble; pairs 32 + 21, bit 4.
        block[64 + 21] = 0x7c;
        block[HIGH + 32 + 21] = 0b0011_0000;
        let mut out = [9.0; SUPER];
        dequantize(&block, &mut out);
        assert_eq!(out[213], -1.5 * (55.0 - 32.0));
        assert_eq!(out[214], -1.5 * -32.0);
        assert_eq!(out[224], 0.0);
    }

    #[test]
    fn quantizing_keeps_values() {
        keeps_values(quantize, dequantize, 1.25 / 32.0);
    }
}
