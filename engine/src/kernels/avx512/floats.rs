//! f32 rows against f32 activations: the 16 virtual lanes are one register.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;

use crate::kernels::matmul::FLOAT_ROWS;
use crate::kernels::scalar::tree;

/// See the scalar twin. The caller holds an `Isa` of this level.
pub(in crate::kernels) fn dot_rows(rows: &[f32], x: &[f32]) -> [f32; FLOAT_ROWS] {
    assert_eq!(
        rows.len(),
        FLOAT_ROWS * x.len(),
        "rows as wide as the activations"
    );
    // SAFETY: reached only through `Isa(Level::Avx512)`, which only detection makes.
    unsafe { dot_rows_avx512(rows, x) }
}

#[target_feature(enable = "avx512f")]
fn dot_rows_avx512(rows: &[f32], x: &[f32]) -> [f32; FLOAT_ROWS] {
    let mut acc = [_mm512_setzero_ps(); FLOAT_ROWS];
    for c in (0..x.len()).step_by(16) {
        // Zeros in the unused lanes of a tail add +0, which changes no lane: none is ever -0.
        let xs = load16(&x[c..]);
        for (i, acc) in acc.iter_mut().enumerate() {
            let ws = load16(&rows[i * x.len()..][..x.len()][c..]);
            *acc = _mm512_add_ps(*acc, _mm512_mul_ps(ws, xs));
        }
    }
    acc.map(|acc| {
        let mut lanes = [0f32; 16];
        // SAFETY: `lanes` holds 16 floats.
        unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), acc) };
        tree(lanes)
    })
}

/// The first 16 floats, or all of a shorter slice and zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn load16(x: &[f32]) -> __m512 {
    let mask = if x.len() >= 16 {
        0xffff
    } else {
        (1u16 << x.len()) - 1
    };
    // SAFETY: lanes beyond the slice are masked off and not read.
    unsafe { _mm512_maskz_loadu_ps(mask, x.as_ptr()) }
}
