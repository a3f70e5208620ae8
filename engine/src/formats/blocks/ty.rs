//! The tensor types that this engine reads.

/// A tensor's element type, as numbered in GGUF (`enum ggml_type` in ggml.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum GgmlType {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_1,
    Mxfp4,
}

impl GgmlType {
    /// Weights per block.
    pub fn block_len(self) -> usize {
        todo!()
    }
    /// Bytes per block.
    pub fn block_bytes(self) -> usize {
        todo!()
    }
    /// Bytes of a row of `cols` weights; `None` when `cols` is no multiple of the block length.
    pub fn row_bytes(self, _cols: usize) -> Option<usize> {
        todo!()
    }
    /// Expands one row into f32, exactly as ggml defines the format.
    pub fn dequantize_row(self, _bytes: &[u8], _out: &mut [f32]) {
        todo!()
    }
}
