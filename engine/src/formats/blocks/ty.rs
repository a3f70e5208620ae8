//! The tensor types that this engine reads.

use super::{floats, mxfp4, q4_0, q4_1, q4_k, q5_k, q6_k, q8_0};

/// A tensor's element type, as numbered in GGUF (`enum ggml_type` in ggml.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GgmlType {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
    /// 32 int8 under one f16 scale.
    Q8_0,
    /// 32 nibbles minus 8 under one f16 scale.
    Q4_0,
    /// 32 nibbles under one f16 scale and one f16 minimum.
    Q4_1,
    /// 256 nibbles in runs of 32 with six-bit scales and minima under two f16 scales.
    Q4K,
    /// Q4_K with five bits a weight.
    Q5K,
    /// 256 six-bit weights in runs of 16 with int8 scales under one f16 scale.
    Q6K,
    /// 32 four-bit floats (E2M1) under one power of two (E8M0).
    Mxfp4,
}

/// What [`GgmlType`] covers, for messages.
pub const SUPPORTED_TYPES: &str = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q5_K, Q6_K, MXFP4";

impl GgmlType {
    /// Every type, in the order of [`SUPPORTED_TYPES`].
    pub const ALL: [GgmlType; 10] = [
        GgmlType::F32,
        GgmlType::F16,
        GgmlType::BF16,
        GgmlType::Q8_0,
        GgmlType::Q4_0,
        GgmlType::Q4_1,
        GgmlType::Q4K,
        GgmlType::Q5K,
        GgmlType::Q6K,
        GgmlType::Mxfp4,
    ];

    /// The type with this number in a GGUF file, if this engine reads it.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.number() == number)
    }
    /// Its number in a GGUF file.
    pub fn number(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q8_0 => 8,
            Self::Q4K => 12,
            Self::Q5K => 13,
            Self::Q6K => 14,
            Self::BF16 => 30,
            Self::Mxfp4 => 39,
        }
    }
    /// Its name as ggml prints it, in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::Q8_0 => "Q8_0",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
            Self::Mxfp4 => "MXFP4",
        }
    }
    /// Weights per block.
    pub fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q8_0 | Self::Q4_0 | Self::Q4_1 | Self::Mxfp4 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }
    /// Bytes per block.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q8_0 => q8_0::BYTES,
            Self::Q4_0 => q4_0::BYTES,
            Self::Q4_1 => q4_1::BYTES,
            Self::Q4K => q4_k::BYTES,
            Self::Q5K => q5_k::BYTES,
            Self::Q6K => q6_k::BYTES,
            Self::Mxfp4 => mxfp4::BYTES,
        }
    }
    /// Whether each weight stands alone (F32, F16, BF16), without a block scale.
    pub fn is_float(self) -> bool {
        self.block_len() == 1
    }
    /// Bytes of a row of `cols` weights; `None` when `cols` is no multiple of the block length
    /// or the bytes overflow.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        if !cols.is_multiple_of(self.block_len()) {
            return None;
        }
        (cols / self.block_len()).checked_mul(self.block_bytes())
    }
    /// Expands one row into f32, exactly as ggml defines the format (ggml-quants.c).
    ///
    /// # Panics
    /// When `bytes` is not the row of `out.len()` weights.
    pub fn dequantize_row(self, bytes: &[u8], out: &mut [f32]) {
        assert_eq!(
            self.row_bytes(out.len()),
            Some(bytes.len()),
            "a row of {} {} weights",
            out.len(),
            self.name()
        );
        match self {
            Self::F32 => floats::expand_f32(bytes, out),
            Self::F16 => floats::expand_f16(bytes, out),
            Self::BF16 => floats::expand_bf16(bytes, out),
            Self::Q8_0 => q8_0::dequantize(bytes, out),
            Self::Q4_0 => q4_0::dequantize(bytes, out),
            Self::Q4_1 => q4_1::dequantize(bytes, out),
            Self::Q4K => q4_k::dequantize(bytes, out),
            Self::Q5K => q5_k::dequantize(bytes, out),
            Self::Q6K => q6_k::dequantize(bytes, out),
            Self::Mxfp4 => mxfp4::dequantize(bytes, out),
        }
    }
    /// Packs one row of finite f32 by ggml's reference quantizers (round to nearest even for
    /// the float formats; in the K formats without ggml's search for scales), appending to `out`.
    ///
    /// # Panics
    /// When the row's length is no multiple of the block length.
    pub fn quantize_row(self, row: &[f32], out: &mut Vec<u8>) {
        assert!(
            self.row_bytes(row.len()).is_some(),
            "a row of {} weights is not whole {} blocks",
            row.len(),
            self.name()
        );
        match self {
            Self::F32 => floats::pack_f32(row, out),
            Self::F16 => floats::pack_f16(row, out),
            Self::BF16 => floats::pack_bf16(row, out),
            Self::Q8_0 => q8_0::quantize(row, out),
            Self::Q4_0 => q4_0::quantize(row, out),
            Self::Q4_1 => q4_1::quantize(row, out),
            Self::Q4K => q4_k::quantize(row, out),
            Self::Q5K => q5_k::quantize(row, out),
            Self::Q6K => q6_k::quantize(row, out),
            Self::Mxfp4 => mxfp4::quantize(row, out),
        }
    }
}

/// The name that ggml gives to a type number (ggml.h), read by this engine or not.
pub fn ggml_type_name(number: u32) -> Option<&'static str> {
    Some(match number {
        6 => "Q5_0",
        7 => "Q5_1",
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        40 => "NVFP4",
        _ => return GgmlType::from_number(number).map(GgmlType::name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_ggmls() {
        let sizes: Vec<_> = GgmlType::ALL
            .iter()
            .map(|t| (t.name(), t.block_len(), t.block_bytes()))
            .collect();
        assert_eq!(
            sizes,
            [
                ("F32", 1, 4),
                ("F16", 1, 2),
                ("BF16", 1, 2),
                ("Q8_0", 32, 34),
                ("Q4_0", 32, 18),
                ("Q4_1", 32, 20),
                ("Q4_K", 256, 144),
                ("Q5_K", 256, 176),
                ("Q6_K", 256, 210),
                ("MXFP4", 32, 17),
            ]
        );
    }

    #[test]
    fn numbers_round_trip_and_unread_types_have_names() {
        for ty in GgmlType::ALL {
            assert_eq!(GgmlType::from_number(ty.number()), Some(ty));
            assert_eq!(ggml_type_name(ty.number()), Some(ty.name()));
        }
        assert_eq!(GgmlType::from_number(10), None);
        assert_eq!(ggml_type_name(10), Some("Q2_K"));
        assert_eq!(ggml_type_name(4), None);
    }

    #[test]
    fn rows_must_be_whole_blocks() {
        assert_eq!(GgmlType::Mxfp4.row_bytes(2880), Some(90 * 17));
        assert_eq!(GgmlType::Mxfp4.row_bytes(33), None);
        assert_eq!(GgmlType::F32.row_bytes(usize::MAX), None);
    }
}
