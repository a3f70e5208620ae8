//! Quantised weights against the digits of activations, one row and one token at a time.

use std::ops::Range;

use super::k_quants::{Q4K, Q5K};
use super::mxfp4::Mxfp4;
use super::q4_0::Q4_0;
use super::q4_1::Q4_1;
use super::q6_k::Q6K;
use super::q8_0::Q8_0;
use crate::formats::blocks::GgmlType;
use crate::kernels::activations::ActBlock;
use crate::kernels::by_format::by_format;
use crate::kernels::{Activations, Matrix, Precision};

/// A block format.
pub(super) trait Format {
    /// Bytes of a block.
    const BYTES: usize;
    /// Blocks of activations to a block of weights: its parts of 32.
    const PARTS: usize = 1;

    /// `acc` plus the products of one part of a block with a block of one digit.
    fn step(acc: f32, block: &[u8], part: usize, x: &ActBlock) -> f32;
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
    by_format!(w.ty, strip(w, rows, x, tokens, precision, out));
}

fn strip<F: Format>(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    let width = rows.len();
    for r in rows.clone() {
        let row = w.read_row(r);
        for t in tokens.clone() {
            out[(t - tokens.start) * width + (r - rows.start)] = dot::<F>(&row, x, t, precision);
        }
    }
}

/// Parts of blocks join in k order from +0, and within a part the first digit before the second.
fn dot<F: Format>(row: &[u8], x: &Activations, t: usize, precision: Precision) -> f32 {
    let mut acc = 0f32;
    for (b, block) in row.chunks_exact(F::BYTES).enumerate() {
        for part in 0..F::PARTS {
            for digit in 0..x.digits(precision) {
                acc = F::step(acc, block, part, x.block(digit, t, b * F::PARTS + part));
            }
        }
    }
    acc
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of one block times one digit.
    pub fn dot<F: Format>(row: &[u8], q: &[i8], d: f32) -> f32 {
        let parts = q.as_chunks().0.iter().enumerate();
        parts.fold(0.0, |acc, (part, q)| {
            F::step(acc, row, part, &ActBlock::new(*q, d))
        })
    }

    #[test]
    fn digits_add_in_order() {
        // Two blocks of weights 1: both digits of a block, then the next block.
        let mut row = vec![0x00, 0x3c];
        row.extend([1u8; 32]);
        let row = row.repeat(2);
        let mut x = [0f32; 64];
        // First digits 127 and -126 under a scale of 1, and a second digit worth 3 / 256.
        (x[0], x[1], x[2]) = (127.0, -126.0, 3.0 / 256.0);
        // Here f32 are 2 apart, and this one is even.
        let big = 127.0 * 262_144.0;
        x[32] = big;
        let mut a = Activations::default();
        a.set(&x, 1, 64, Precision::Int16);
        // 1 + 3 / 256 is more than half of 2; 1 alone is a tie.
        assert_eq!(super::dot::<Q8_0>(&row, &a, 0, Precision::Int16), big + 2.0);
        assert_eq!(super::dot::<Q8_0>(&row, &a, 0, Precision::Int8), big);
    }
}
