//! Q5_K: as Q4_K, with 32 bytes before the nibbles: bit i of byte j is the fifth bit of weight j
//! of run i (ggml-common.h `block_q5_K`).

use super::floats::f16_at;
use super::k_scales::{self, KPart, SUPER};

pub(super) const BYTES: usize = 176;

/// Run `i` of a super-block.
pub fn q5_k_part(block: &[u8; BYTES], i: usize) -> KPart {
    let (scale, min) = k_scales::unpack(&block[4..16], i);
    let (high, low) = (&block[16..48], &block[48 + 32 * (i / 2)..]);
    let q = std::array::from_fn(|j| (low[j] >> (4 * (i % 2))) & 15 | ((high[j] >> i) & 1) << 4);
    KPart { q, scale, min }
}

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<SUPER>().0) {
        let scales = (f16_at(block), f16_at(&block[2..]));
        k_scales::dequantize(scales, |i| q5_k_part(block, i), out);
    }
}

pub(super) fn quantize(row: &[f32], out: &mut Vec<u8>) {
    for row in row.as_chunks::<SUPER>().0 {
        let codes = k_scales::quantize(row, 31, out);
        let high = |j: usize| (0..8).fold(0, |byte, i| byte | (codes[32 * i + j] >> 4) << i);
        out.extend((0..32).map(high));
        for pair in codes.as_chunks::<64>().0 {
            out.extend((0..32).map(|j| (pair[j] & 15) | (pair[j + 32] & 15) << 4));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_by_hand() {
        let mut block = [0; BYTES];
        block[..4].copy_from_slice(&[0x00, 0x3c, 0x00, 0x38]); // 1.0, 0.5
        block[4 + 4] = 0x80; // the high two bits of run 4's minimum: 2
        block[4 + 8] = 0x32; // low bits: scale 2, minimum 3
        block[16 + 6] = 1 << 4; // fifth bit of weight 6 of run 4
        block[48 + 64 + 6] = 0xa7; // low bits 7
        let mut out = [9.0; SUPER];
        dequantize(&block, &mut out);
        assert_eq!(out[128 + 6], 2.0 * 23.0 - 0.5 * 35.0);
        assert_eq!(out[128 + 7], -17.5);
    }

    #[test]
    fn quantizing_keeps_values() {
        k_scales::tests::keeps_values(quantize, dequantize, 2.0 / 31.0);
    }
}
