//! Quantised weights against the digits of activations, one row and one token at a time.

use std::ops::Range;

use super::mxfp4::Mxfp4;
use super::q4_0::Q4_0;
use super::q4_1::Q4_1;
use super::q8_0::Q8_0;
use crate::formats::blocks::GgmlType;
use crate::kernels::activations::ActBlock;
use crate::kernels::{Activations, Matrix, Precision};

/// A block format.
pub(super) trait Format {
    /// Bytes of a block.
    const BYTES: usize;

    /// `acc` plus a block's products with a block of one digit.
    fn step(acc: f32, block: &[u8], x: ActBlock<'_>) -> f32;
}

/// See [`crate::kernels::matmul`].
pub(in crate::kernels) fn quantised(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    let dot = match w.ty {
        GgmlType::Mxfp4 => dot::<Mxfp4>,
        GgmlType::Q8_0 => dot::<Q8_0>,
        GgmlType::Q4_0 => dot::<Q4_0>,
        GgmlType::Q4_1 => dot::<Q4_1>,
        GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 => {
            unreachable!("float weights take the float kernels")
        }
    };
    let width = rows.len();
    for r in rows.clone() {
        let row = w.read_row(r);
        for t in tokens.clone() {
            out[(t - tokens.start) * width + (r - rows.start)] = dot(&row, x, t, precision);
        }
    }
}

/// Blocks join in k order from +0, and within a block the first digit before the second.
fn dot<F: Format>(row: &[u8], x: &Activations, t: usize, precision: Precision) -> f32 {
    let blocks = row.chunks_exact(F::BYTES);
    let first = t * blocks.len();
    let mut acc = 0f32;
    for (b, block) in blocks.enumerate() {
        for digit in x.digits(precision) {
            acc = F::step(acc, block, digit.block(first + b));
        }
    }
    acc
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::kernels::activations::Digit;

    /// A row of one block times one digit.
    pub fn dot<F: Format>(row: &[u8], q: &[i8], d: &[f32]) -> f32 {
        let sums = vec![q.iter().map(|q| i32::from(*q)).sum()];
        let digit = Digit {
            q: q.to_vec(),
            d: d.to_vec(),
            sums,
        };
        F::step(0.0, row, digit.block(0))
    }

    #[test]
    fn digits_add_in_order() {
        // Two blocks of weights 1: the first digit of a block, the second, then the next block.
        let mut row = vec![0x00, 0x3c];
        row.extend([1u8; 32]);
        let row = row.repeat(2);
        let mut x = Activations {
            n: 1,
            k: 64,
            ..Activations::default()
        };
        for (digit, d) in x
            .digits
            .iter_mut()
            .zip([[16_777_216.0, -16_777_216.0], [1.0, 1.0]])
        {
            digit.q = vec![0; 64];
            (digit.q[0], digit.q[32]) = (1, 1);
            digit.d = d.to_vec();
            digit.sums = vec![1, 1];
        }
        // 2^24 + 1 is 2^24; - 2^24 + 1 is 1.
        assert_eq!(super::dot::<Q8_0>(&row, &x, 0, Precision::Int16), 1.0);
        assert_eq!(super::dot::<Q8_0>(&row, &x, 0, Precision::Int8), 0.0);
    }
}
