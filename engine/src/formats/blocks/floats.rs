//! F32, F16 and BF16: each weight stands alone, little-endian.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

pub(super) fn expand_f32(bytes: &[u8], out: &mut [f32]) {
    for (o, b) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *o = f32::from_le_bytes(*b);
    }
}

pub(super) fn expand_f16(bytes: &[u8], out: &mut [f32]) {
    // In runs, because `half` then uses the machine's own conversion.
    const RUN: usize = 64;
    let mut run = [f16::ZERO; RUN];
    for (out, bytes) in out.chunks_mut(RUN).zip(bytes.chunks(2 * RUN)) {
        for (h, b) in run.iter_mut().zip(bytes.as_chunks::<2>().0) {
            *h = f16::from_le_bytes(*b);
        }
        run[..out.len()].convert_to_f32_slice(out);
    }
}

pub(super) fn expand_bf16(bytes: &[u8], out: &mut [f32]) {
    for (o, b) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *o = f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16);
    }
}

pub(super) fn pack_f32(row: &[f32], out: &mut Vec<u8>) {
    out.extend(row.iter().flat_map(|x| x.to_le_bytes()));
}

pub(super) fn pack_f16(row: &[f32], out: &mut Vec<u8>) {
    out.extend(row.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()));
}

pub(super) fn pack_bf16(row: &[f32], out: &mut Vec<u8>) {
    out.extend(row.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()));
}

/// The f16 at the start of `bytes`, widened.
pub(super) fn f16_at(bytes: &[u8]) -> f32 {
    f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_expand() {
        let mut out = [0.0; 2];
        expand_f16(&[0x00, 0x3c, 0x01, 0x00], &mut out);
        assert_eq!(out, [1.0, 2f32.powi(-24)]);
        expand_bf16(&[0x80, 0x3f, 0x20, 0xc1], &mut out);
        assert_eq!(out, [1.0, -10.0]);
    }

    #[test]
    fn packing_then_expanding_keeps_representable_values() {
        let row = [0.0, -1.5, 1024.0, -0.25];
        type Pack = fn(&[f32], &mut Vec<u8>);
        type Expand = fn(&[u8], &mut [f32]);
        let pairs: [(Pack, Expand); 3] = [
            (pack_f32, expand_f32),
            (pack_f16, expand_f16),
            (pack_bf16, expand_bf16),
        ];
        for (pack, expand) in pairs {
            let mut bytes = Vec::new();
            pack(&row, &mut bytes);
            let mut out = [9.0; 4];
            expand(&bytes, &mut out);
            assert_eq!(out, row);
        }
    }
}
