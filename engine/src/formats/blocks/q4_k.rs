//! Q4_K: scales and minima as in `k_scales`, then 128 bytes of nibbles; bytes 32 j to 32 j + 31
//! hold run 2 j in their low nibbles and run 2 j + 1 in the high ones (ggml-common.h
//! `block_q4_K`).

use super::floats::f16_at;
use super::k_scales::{self, KPart, SUPER};

pub(super) const BYTES: usize = 144;

/// Run `i` of a super-block.
pub fn q4_k_part(block: &[u8; BYTES], i: usize) -> KPart {
    let (scale, min) = k_scales::unpack(&block[4..16], i);
    let bytes = &block[16 + 32 * (i / 2)..];
    let q = std::array::from_fn(|j| (bytes[j] >> (4 * (i % 2))) & 15);
    KPart { q, scale, min }
}

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (block, out) in blocks.iter().zip(out.as_chunks_mut::<SUPER>().0) {
        let scales = (f16_at(block), f16_at(&block[2..]));
        k_scales::dequantize(scales, |i| q4_k_part(block, i), out);
    }
}

pub(super) fn quantize(row: &[f32], out: &mut Vec<u8>) {
    for row in row.as_chunks::<SUPER>().0 {
        let codes = k_scales::quantize(row, 15, out);
        for pair in codes.as_chunks::<64>().0 {
            out.extend((0..32).map(|j| pair[j] | pair[j + 32] << 4));
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
        block[4 + 1] = 3; // scale of run 1
        block[4 + 4 + 1] = 5; // its minimum
        block[16 + 7] = 0x9f; // weight 7 of run 0, and of run 1
        let mut out = [9.0; SUPER];
        dequantize(&block, &mut out);
        assert_eq!(out[7], 0.0); // the scale of run 0 is 0
        assert_eq!(out[32 + 7], 3.0 * 9.0 - 2.5);
        assert_eq!(out[32 + 8], -2.5);
        assert_eq!(out[64..], [0.0; 192]);
    }

    #[test]
    fn quantizing_keeps_values() {
        k_scales::tests::keeps_values(quantize, dequantize, 2.0 / 15.0);
    }
}
