//! Matrix times activations.

use std::ops::Range;

use super::{Activations, Isa, Precision};
use crate::formats::blocks::GgmlType;

/// A weight matrix as it lies in the file: `rows` rows of `cols` weights.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// Element type.
    pub ty: GgmlType,
    /// Output width.
    pub rows: usize,
    /// Input width.
    pub cols: usize,
    /// `rows` times the row's bytes.
    pub bytes: &'a [u8],
}

/// `out[(t - tokens.start) * rows.len() + (r - rows.start)] = w[r] . x[t]`, for a strip of rows
/// and a range of tokens. The bits of each output depend on row r and token t alone.
pub fn matmul(
    _isa: Isa,
    _w: &Matrix<'_>,
    _rows: Range<usize>,
    _x: &Activations,
    _tokens: Range<usize>,
    _precision: Precision,
    _out: &mut [f32],
) {
    todo!()
}
