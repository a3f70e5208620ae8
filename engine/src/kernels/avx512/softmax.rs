//! Softmax with a row's block of scores in four registers.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;

use crate::kernels::LANES;
use crate::kernels::elementary::{ENDS, LN2_HIGH, LN2_LOW, ROUNDER, TAYLOR};
use crate::kernels::softmax::{KEY_BLOCK, Tally};

/// See [`crate::kernels::soften`]. The caller holds an `Isa` of this level.
pub(in crate::kernels) fn soften(scores: &mut [[f32; KEY_BLOCK]], tallies: &mut [Tally]) {
    // SAFETY: reached only through `Isa(Level::Avx512)`, which only detection makes.
    unsafe { soften_avx512(scores, tallies) }
}

#[target_feature(enable = "avx512f")]
fn soften_avx512(scores: &mut [[f32; KEY_BLOCK]], tallies: &mut [Tally]) {
    for (scores, tally) in scores.iter_mut().zip(tallies) {
        if tally.begin(scores) {
            row(scores, tally);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn row(scores: &mut [f32; KEY_BLOCK], tally: &mut Tally) {
    let at = scores.as_mut_ptr();
    // SAFETY: four times sixteen scores.
    let s: [__m512; 4] = std::array::from_fn(|i| unsafe { _mm512_loadu_ps(at.add(LANES * i)) });
    let mut lanes = _mm512_set1_ps(f32::NEG_INFINITY);
    for s in s {
        // The second operand is the result where the first is NaN or not larger.
        lanes = _mm512_max_ps(s, lanes);
    }
    let [low, high] = halves(lanes);
    let lanes = _mm256_max_ps(high, low);
    let lanes = _mm_max_ps(
        _mm256_extractf128_ps::<1>(lanes),
        _mm256_castps256_ps128(lanes),
    );
    let lanes = _mm_max_ps(_mm_movehl_ps(lanes, lanes), lanes);
    let lanes = _mm_max_ss(_mm_movehdup_ps(lanes), lanes);
    tally.rise(_mm_cvtss_f32(lanes));

    let max = _mm512_set1_ps(tally.max);
    let mut sums = _mm512_setzero_ps();
    for (i, s) in s.into_iter().enumerate() {
        let weight = exp(_mm512_sub_ps(s, max));
        sums = _mm512_add_ps(sums, weight);
        // SAFETY: as above.
        unsafe { _mm512_storeu_ps(at.add(LANES * i), weight) };
    }
    let [low, high] = halves(sums);
    let lanes = _mm256_add_ps(low, high);
    let lanes = _mm_add_ps(
        _mm256_castps256_ps128(lanes),
        _mm256_extractf128_ps::<1>(lanes),
    );
    let lanes = _mm_add_ps(lanes, _mm_movehl_ps(lanes, lanes));
    let lanes = _mm_add_ss(lanes, _mm_movehdup_ps(lanes));
    tally.count(_mm_cvtss_f32(lanes));
}

/// Lanes 0 to 7, and 8 to 15.
#[inline]
#[target_feature(enable = "avx512f")]
fn halves(x: __m512) -> [__m256; 2] {
    let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(x));
    [_mm512_castps512_ps256(x), _mm256_castpd_ps(high)]
}

/// [`crate::kernels::exp`] in each lane, for numbers that are not above 0: nothing overflows, and
/// 2^n needs but one step. NaN stays NaN by itself.
#[inline]
#[target_feature(enable = "avx512f")]
fn exp(x: __m512) -> __m512 {
    let set = |x: f32| _mm512_set1_ps(x);
    let least = set(ENDS[0]);
    let clamped = _mm512_max_ps(least, x);
    let rounded = _mm512_add_ps(
        _mm512_mul_ps(clamped, set(std::f32::consts::LOG2_E)),
        set(ROUNDER),
    );
    let n = _mm512_sub_ps(rounded, set(ROUNDER));
    let r = _mm512_sub_ps(clamped, _mm512_mul_ps(n, set(LN2_HIGH)));
    let r = _mm512_sub_ps(r, _mm512_mul_ps(n, set(LN2_LOW)));
    let mut p = set(TAYLOR[0]);
    for coefficient in &TAYLOR[1..] {
        p = _mm512_add_ps(_mm512_mul_ps(p, r), set(*coefficient));
    }
    let e = _mm512_mul_ps(_mm512_mul_ps(p, r), r);
    let e = _mm512_add_ps(_mm512_add_ps(e, r), set(1.0));
    // The bits of `rounded` less those of the rounder are n; shifted up, all but n + 127 is lost.
    let bias = _mm512_set1_epi32(127 - ROUNDER.to_bits() as i32);
    let power = _mm512_slli_epi32::<23>(_mm512_add_epi32(_mm512_castps_si512(rounded), bias));
    let y = _mm512_mul_ps(e, _mm512_castsi512_ps(power));
    _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, least), y)
}
