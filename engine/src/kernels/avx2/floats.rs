//! f32 rows against f32 activations: the 16 virtual lanes are two registers.

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
    // SAFETY: reached only through `Isa(Level::Avx2)`, which only detection makes.
    unsafe { dot_rows_avx2(rows, x) }
}

#[target_feature(enable = "avx2")]
fn dot_rows_avx2(rows: &[f32], x: &[f32]) -> [f32; FLOAT_ROWS] {
    let mut low = [_mm256_setzero_ps(); FLOAT_ROWS];
    let mut high = [_mm256_setzero_ps(); FLOAT_ROWS];
    let (chunks, tail) = x.as_chunks::<16>();
    for (c, chunk) in chunks.iter().enumerate() {
        let (x0, x1) = load16(chunk);
        for i in 0..FLOAT_ROWS {
            let (w0, w1) = load16(&rows[i * x.len() + c * 16..][..16]);
            low[i] = _mm256_add_ps(low[i], _mm256_mul_ps(w0, x0));
            high[i] = _mm256_add_ps(high[i], _mm256_mul_ps(w1, x1));
        }
    }
    if !tail.is_empty() {
        // Zeros in the unused lanes add +0, which changes no lane: none is ever -0.
        let (x0, x1) = load16(&padded(tail));
        for i in 0..FLOAT_ROWS {
            let row = &rows[i * x.len()..][..x.len()];
            let (w0, w1) = load16(&padded(&row[x.len() - tail.len()..]));
            low[i] = _mm256_add_ps(low[i], _mm256_mul_ps(w0, x0));
            high[i] = _mm256_add_ps(high[i], _mm256_mul_ps(w1, x1));
        }
    }
    std::array::from_fn(|i| {
        let mut lanes = [0f32; 16];
        // SAFETY: `lanes` holds 16 floats.
        unsafe {
            _mm256_storeu_ps(lanes.as_mut_ptr(), low[i]);
            _mm256_storeu_ps(lanes.as_mut_ptr().add(8), high[i]);
        }
        tree(lanes)
    })
}

#[inline]
#[target_feature(enable = "avx2")]
fn load16(x: &[f32]) -> (__m256, __m256) {
    debug_assert!(x.len() >= 16, "16 floats to load");
    // SAFETY: both callers pass slices of exactly 16 floats.
    unsafe {
        (
            _mm256_loadu_ps(x.as_ptr()),
            _mm256_loadu_ps(x.as_ptr().add(8)),
        )
    }
}

fn padded(tail: &[f32]) -> [f32; 16] {
    let mut out = [0f32; 16];
    out[..tail.len()].copy_from_slice(tail);
    out
}
