//! What Q4_K and Q5_K share: 256 weights in eight runs of 32, each with a scale and a minimum of
//! six bits under one f16 scale d and one f16 scale of minima (ggml-common.h `block_q4_K`).

use half::f16;

/// Weights of a super-block.
pub(super) const SUPER: usize = 256;

/// A run of 32 weights: weight j is `d * scale * q[j] - dmin * min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KPart {
    /// Codes, below 16 in Q4_K and below 32 in Q5_K.
    pub q: [u8; 32],
    /// Below 64.
    pub scale: u8,
    /// Below 64.
    pub min: u8,
}

/// Scale and minimum of run `i` from the 12 bytes that hold eight of each: the first four of
/// both in the low six bits of bytes 0 to 7; of the others the low four bits in bytes 8 to 11,
/// the high two on top of bytes 0 to 7.
pub(super) fn unpack(packed: &[u8], i: usize) -> (u8, u8) {
    if i < 4 {
        return (packed[i] & 63, packed[i + 4] & 63);
    }
    let low = packed[i + 4];
    (
        (low & 15) | (packed[i - 4] >> 6) << 4,
        (low >> 4) | (packed[i] >> 6) << 4,
    )
}

/// The inverse of [`unpack`] over all runs.
fn pack(scales: [u8; 8], mins: [u8; 8]) -> [u8; 12] {
    let mut packed = [0; 12];
    for i in 0..4 {
        packed[i] = scales[i] | (scales[i + 4] >> 4) << 6;
        packed[i + 4] = mins[i] | (mins[i + 4] >> 4) << 6;
        packed[i + 8] = (scales[i + 4] & 15) | (mins[i + 4] & 15) << 4;
    }
    packed
}

/// Expands runs of a super-block whose scales are d and dmin.
pub(super) fn dequantize(
    (d, dmin): (f32, f32),
    part: impl Fn(usize) -> KPart,
    out: &mut [f32; SUPER],
) {
    for (i, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let KPart { q, scale, min } = part(i);
        let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
        for (o, q) in out.iter_mut().zip(q) {
            *o = scale * f32::from(q) - min;
        }
    }
}

/// A super-block's first 16 bytes (d, dmin, scales), then its codes, at most `top` each. The
/// smallest weight of a run (or 0) becomes its minimum; scales are rounded, then codes. (ggml
/// searches for the scales that fit best.)
pub(super) fn quantize(row: &[f32; SUPER], top: u8, out: &mut Vec<u8>) -> [u8; SUPER] {
    let runs = row.as_chunks::<32>().0;
    let mins: [f32; 8] = std::array::from_fn(|i| -runs[i].iter().copied().fold(0f32, f32::min));
    let steps: [f32; 8] = std::array::from_fn(|i| {
        let max = runs[i].iter().copied().fold(0f32, f32::max);
        (max + mins[i]) / f32::from(top)
    });
    let (d, scales) = six_bits(steps);
    let (dmin, mins) = six_bits(mins);
    out.extend(d.to_le_bytes());
    out.extend(dmin.to_le_bytes());
    out.extend(pack(scales, mins));
    let mut codes = [0; SUPER];
    for (i, (run, codes)) in runs.iter().zip(codes.as_chunks_mut::<32>().0).enumerate() {
        let scale = d.to_f32() * f32::from(scales[i]);
        let min = dmin.to_f32() * f32::from(mins[i]);
        for (x, code) in run.iter().zip(codes) {
            if scale > 0.0 {
                *code = ((x + min) / scale).round().clamp(0.0, f32::from(top)) as u8;
            }
        }
    }
    codes
}

/// Values of 0 or more as six-bit multiples of one f16.
fn six_bits(values: [f32; 8]) -> (f16, [u8; 8]) {
    let most = values.iter().copied().fold(0f32, f32::max);
    let unit = f16::from_f32(most / 63.0);
    let step = unit.to_f32();
    let quotient = |v: f32| (v / step).round().clamp(0.0, 63.0) as u8;
    (
        unit,
        if step > 0.0 {
            values.map(quotient)
        } else {
            [0; 8]
        },
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn six_bit_numbers_survive() {
        let scales = [0, 63, 17, 32, 63, 15, 16, 48];
        let mins = [63, 0, 1, 2, 47, 31, 33, 62];
        let packed = pack(scales, mins);
        for i in 0..8 {
            assert_eq!(unpack(&packed, i), (scales[i], mins[i]), "run {i}");
        }
    }

    /// Each weight of 256 distinct ones within a bit more than half a step of what was packed
    /// (scales of six bits cost the rest).
    pub(in crate::formats::blocks) fn keeps_values(
        quantize: fn(&[f32], &mut Vec<u8>),
        dequantize: fn(&[u8], &mut [f32]),
        step: f32,
    ) {
        let row: Vec<f32> = (0..512)
            .map(|i| ((i * 197 % 512) as f32 - 200.0) / 256.0)
            .collect();
        let mut bytes = Vec::new();
        quantize(&row, &mut bytes);
        let mut back = vec![9.0; 512];
        dequantize(&bytes, &mut back);
        for (x, y) in row.iter().zip(&back) {
            assert!((x - y).abs() < 0.8 * step, "{x} became {y}");
        }
        let mut zeros = Vec::new();
        quantize(&[0.0; 256], &mut zeros);
        dequantize(&zeros, &mut back[..256]);
        assert!(back[..256].iter().all(|x| *x == 0.0));
    }
}
