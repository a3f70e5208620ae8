//! Quantised weights against int8 activations, one row and one token at a time.

use std::ops::Range;

use super::{mxfp4, q4_0, q4_1, q8_0};
use crate::formats::blocks::GgmlType;
use crate::kernels::{Activations, Matrix};

/// See [`crate::kernels::matmul`].
pub(in crate::kernels) fn quantised(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    out: &mut [f32],
) {
    let width = rows.len();
    for r in rows.clone() {
        let row = w.row(r);
        for t in tokens.clone() {
            let (q, d, sums) = x.token(t);
            out[(t - tokens.start) * width + (r - rows.start)] = match w.ty {
                GgmlType::Mxfp4 => mxfp4::dot(row, q, d),
                GgmlType::Q8_0 => q8_0::dot(row, q, d),
                GgmlType::Q4_0 => q4_0::dot(row, q, d),
                GgmlType::Q4_1 => q4_1::dot(row, q, d, sums),
                GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 => {
                    unreachable!("float weights take the float kernels")
                }
            };
        }
    }
}
