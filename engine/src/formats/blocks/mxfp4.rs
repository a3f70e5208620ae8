//! MXFP4: an E8M0 exponent e, then 16 bytes of E2M1 nibbles in Q4_0's order (OCP Microscaling
//! Formats 1.0; ggml-common.h `block_mxfp4`). Values are kept doubled, so that they are
//! integers, under the halved scale 2^(e - 128).

pub(super) const BYTES: usize = 17;

/// Twice the value of each E2M1 code.
pub const MXFP4_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// 2^(e - 128), the scale of the doubled values; e = 255 (NaN in E8M0) is for the caller to
/// refuse, and reads as 2^127 here as in ggml.
pub fn e8m0_half(e: u8) -> f32 {
    // Below e = 2 the result is subnormal: 2^-128 and 2^-127.
    let bits = if e < 2 {
        0x0020_0000 << e
    } else {
        (u32::from(e) - 1) << 23
    };
    f32::from_bits(bits)
}

pub(super) fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (block, out) in bytes
        .as_chunks::<BYTES>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<32>().0)
    {
        let d = e8m0_half(block[0]);
        for (j, byte) in block[1..].iter().enumerate() {
            out[j] = f32::from(MXFP4_DOUBLED[usize::from(byte & 15)]) * d;
            out[j + 16] = f32::from(MXFP4_DOUBLED[usize::from(byte >> 4)]) * d;
        }
    }
}

/// `quantize_row_mxfp4_ref`: e = floor(log2(amax)) - 2 + 127, then the nearest code, the first
/// in table order among equals.
pub(super) fn quantize(row: &[f32], out: &mut Vec<u8>) {
    for block in row.as_chunks::<32>().0 {
        let amax = block.iter().fold(0f32, |m, x| m.max(x.abs()));
        let e = exponent(amax);
        let d = e8m0_half(e);
        out.push(e);
        let code = |x: f32| {
            let mut best = 0u8;
            let mut best_error = f32::INFINITY;
            for (i, v) in (0u8..).zip(MXFP4_DOUBLED) {
                let error = (f32::from(v) * d - x).abs();
                if error < best_error {
                    best = i;
                    best_error = error;
                }
            }
            best
        };
        out.extend((0..16).map(|j| code(block[j]) | code(block[j + 16]) << 4));
    }
}

/// floor(log2(amax)) + 125, and 0 for an all-zero block or one too small for E8M0.
fn exponent(amax: f32) -> u8 {
    let biased = (amax.to_bits() >> 23) & 0xff; // floor(log2) + 127 for normal numbers
    biased.saturating_sub(2) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_powers_of_two_down_to_the_subnormals() {
        for e in 0..=254u8 {
            assert_eq!(
                f64::from(e8m0_half(e)),
                2f64.powi(i32::from(e) - 128),
                "e = {e}"
            );
        }
    }

    #[test]
    fn a_block_by_hand() {
        let mut bytes = vec![128];
        bytes.extend((0..16).map(|j| j | (15 - j) << 4));
        let mut out = [0.0; 32];
        dequantize(&bytes, &mut out);
        for j in 0..16 {
            assert_eq!(out[j], f32::from(MXFP4_DOUBLED[j]));
            assert_eq!(out[j + 16], f32::from(MXFP4_DOUBLED[15 - j]));
        }
    }

    #[test]
    fn grid_values_survive() {
        let row: Vec<f32> = (0..32)
            .map(|i| f32::from(MXFP4_DOUBLED[i % 16]) * 0.125)
            .collect();
        let mut bytes = Vec::new();
        quantize(&row, &mut bytes);
        let mut back = vec![1.0; 32];
        dequantize(&bytes, &mut back);
        assert_eq!(row, back);
    }
}
