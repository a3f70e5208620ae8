//! Values that no sound file holds: NaN and infinite scales or weights.

use half::f16;

use super::{GgmlType, q6_k};

/// The largest E8M0 exponent that the integer kernels take (a scale of 2^100); 255 is NaN.
pub const MAX_E8M0: u8 = 228;

/// A value that makes every product with it worthless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueFault {
    /// The row, counted over the whole tensor (all experts).
    pub row: usize,
    /// The block within the row (the weight itself for F32, F16, BF16).
    pub block: usize,
    /// What it is.
    pub what: &'static str,
}

/// The first unusable scale or weight of a tensor with `cols` weights a row, if any.
pub fn first_fault(ty: GgmlType, cols: usize, bytes: &[u8]) -> Option<ValueFault> {
    let blocks = cols / ty.block_len();
    let bad: fn(&[u8]) -> Option<&'static str> = match ty {
        GgmlType::F32 => f32_fault,
        GgmlType::F16 | GgmlType::Q8_0 | GgmlType::Q4_0 => f16_fault,
        GgmlType::BF16 => bf16_fault,
        GgmlType::Q6K => |b| f16_fault(&b[q6_k::D..]),
        GgmlType::Q4_1 | GgmlType::Q4K | GgmlType::Q5K => {
            |b| f16_fault(b).or_else(|| f16_fault(&b[2..]))
        }
        GgmlType::Mxfp4 => e8m0_fault,
    };
    bytes
        .chunks_exact(ty.block_bytes())
        .enumerate()
        .find_map(|(i, block)| bad(block).map(|what| (i, what)))
        .map(|(i, what)| ValueFault {
            row: i / blocks,
            block: i % blocks,
            what,
        })
}

fn e8m0_fault(block: &[u8]) -> Option<&'static str> {
    match block[0] {
        255 => Some("an E8M0 scale of 255, which is NaN"),
        e if e > MAX_E8M0 => Some("an E8M0 scale above 2^101"),
        _ => None,
    }
}

fn f16_fault(block: &[u8]) -> Option<&'static str> {
    kind(f16::from_le_bytes([block[0], block[1]]).to_f32())
}

fn bf16_fault(block: &[u8]) -> Option<&'static str> {
    kind(f32::from_le_bytes([0, 0, block[0], block[1]]))
}

fn f32_fault(block: &[u8]) -> Option<&'static str> {
    kind(f32::from_le_bytes([block[0], block[1], block[2], block[3]]))
}

fn kind(x: f32) -> Option<&'static str> {
    match x {
        x if x.is_nan() => Some("NaN"),
        x if x.is_infinite() => Some("an infinity"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rows of two blocks, all sound, then one scale set to `scale` bytes.
    fn tensor(ty: GgmlType, row: usize, block: usize, scale: &[u8], at: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; 6 * ty.block_bytes()];
        let start = (row * 2 + block) * ty.block_bytes() + at;
        bytes[start..start + scale.len()].copy_from_slice(scale);
        bytes
    }

    #[test]
    fn names_row_and_block() {
        let cases: [(GgmlType, &[u8], usize, &str); 11] = [
            (
                GgmlType::Mxfp4,
                &[255],
                0,
                "an E8M0 scale of 255, which is NaN",
            ),
            (GgmlType::Mxfp4, &[229], 0, "an E8M0 scale above 2^101"),
            (GgmlType::Q8_0, &[0x00, 0x7e], 0, "NaN"),
            (GgmlType::Q4_0, &[0x00, 0x7c], 0, "an infinity"),
            (GgmlType::Q4_1, &[0x00, 0xfc], 2, "an infinity"),
            (GgmlType::Q4K, &[0x00, 0x7e], 0, "NaN"),
            (GgmlType::Q5K, &[0x00, 0xfc], 2, "an infinity"),
            (GgmlType::Q6K, &[0x00, 0x7c], 208, "an infinity"),
            (GgmlType::F16, &[0x01, 0x7c], 0, "NaN"),
            (GgmlType::BF16, &[0xc0, 0x7f], 0, "NaN"),
            (GgmlType::F32, &[0, 0, 0x80, 0x7f], 0, "an infinity"),
        ];
        for (ty, scale, at, what) in cases {
            let bytes = tensor(ty, 2, 1, scale, at);
            let cols = 2 * ty.block_len();
            let fault = first_fault(ty, cols, &bytes);
            assert_eq!(
                fault,
                Some(ValueFault {
                    row: 2,
                    block: 1,
                    what
                }),
                "{}",
                ty.name()
            );
            let sound = tensor(ty, 0, 0, &[], 0);
            assert_eq!(first_fault(ty, cols, &sound), None);
        }
    }
}
