//! f32 rows against f32 activations: the 16 virtual lanes are four registers.

use crate::kernels::matmul::FLOAT_ROWS;
use crate::kernels::{LANES, Lanes};

/// See the scalar twin.
pub(in crate::kernels) fn dot_rows(rows: &[f32], x: &[f32]) -> [f32; FLOAT_ROWS] {
    assert_eq!(
        rows.len(),
        FLOAT_ROWS * x.len(),
        "rows as wide as the activations"
    );
    let mut sums = [Lanes::zero(); FLOAT_ROWS];
    let (chunks, tail) = x.as_chunks::<LANES>();
    for (i, sum) in sums.iter_mut().enumerate() {
        let row = &rows[i * x.len()..][..x.len()];
        let (weights, rest) = row.as_chunks::<LANES>();
        for (w, x) in weights.iter().zip(chunks) {
            sum.add_products(w, x);
        }
        if !tail.is_empty() {
            // Zeros in the unused lanes add +0, which changes no lane: none is ever -0.
            sum.add_products(&padded(rest), &padded(tail));
        }
    }
    sums.map(Lanes::tree)
}

fn padded(tail: &[f32]) -> [f32; LANES] {
    let mut out = [0f32; LANES];
    out[..tail.len()].copy_from_slice(tail);
    out
}
