//! Softmax with a row's block of scores in eight registers.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;

use crate::kernels::array::array;
use crate::kernels::elementary::{ENDS, LN2_HIGH, LN2_LOW, ROUNDER, TAYLOR};
use crate::kernels::softmax::{KEY_BLOCK, Tally};

/// See [`crate::kernels::soften`]. The caller holds an `Isa` of this level.
pub(in crate::kernels) fn soften(scores: &mut [[f32; KEY_BLOCK]], tallies: &mut [Tally]) {
    // SAFETY: reached only through `Isa(Level::Avx2)`, which only detection makes.
    unsafe { soften_avx2(scores, tallies) }
}

#[target_feature(enable = "avx2")]
fn soften_avx2(scores: &mut [[f32; KEY_BLOCK]], tallies: &mut [Tally]) {
    for (scores, tally) in scores.iter_mut().zip(tallies) {
        if tally.begin(scores) {
            row(scores, tally);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn row(scores: &mut [f32; KEY_BLOCK], tally: &mut Tally) {
    let at = scores.as_mut_ptr();
    // Register i holds the scores from 8 i on: lanes 0 to 7 where i is even, 8 to 15 where odd.
    // SAFETY: eight times eight scores.
    let s: [__m256; 8] = array(|i| unsafe { _mm256_loadu_ps(at.add(8 * i)) });
    let mut low = _mm256_set1_ps(f32::NEG_INFINITY);
    let mut high = low;
    for i in (0..8).step_by(2) {
        // The second operand is the result where the first is NaN or not larger.
        low = _mm256_max_ps(s[i], low);
        high = _mm256_max_ps(s[i + 1], high);
    }
    let lanes = _mm256_max_ps(high, low);
    let lanes = _mm_max_ps(
        _mm256_extractf128_ps::<1>(lanes),
        _mm256_castps256_ps128(lanes),
    );
    let lanes = _mm_max_ps(_mm_movehl_ps(lanes, lanes), lanes);
    let lanes = _mm_max_ss(_mm_movehdup_ps(lanes), lanes);
    tally.rise(_mm_cvtss_f32(lanes));

    let max = _mm256_set1_ps(tally.max);
    let mut sums = [_mm256_setzero_ps(); 2];
    for (i, s) in s.into_iter().enumerate() {
        let weight = exp(_mm256_sub_ps(s, max));
        sums[i % 2] = _mm256_add_ps(sums[i % 2], weight);
        // SAFETY: as above.
        unsafe { _mm256_storeu_ps(at.add(8 * i), weight) };
    }
    let lanes = _mm256_add_ps(sums[0], sums[1]);
    let lanes = _mm_add_ps(
        _mm256_castps256_ps128(lanes),
        _mm256_extractf128_ps::<1>(lanes),
    );
    let lanes = _mm_add_ps(lanes, _mm_movehl_ps(lanes, lanes));
    let lanes = _mm_add_ss(lanes, _mm_movehdup_ps(lanes));
    tally.count(_mm_cvtss_f32(lanes));
}

/// [`crate::kernels::exp`] in each lane, for numbers that are not above 0: nothing overflows, and
/// 2^n needs but one step. NaN stays NaN by itself.
#[inline]
#[target_feature(enable = "avx2")]
fn exp(x: __m256) -> __m256 {
    let set = |x: f32| _mm256_set1_ps(x);
    let least = set(ENDS[0]);
    let clamped = _mm256_max_ps(least, x);
    let rounded = _mm256_add_ps(
        _mm256_mul_ps(clamped, set(std::f32::consts::LOG2_E)),
        set(ROUNDER),
    );
    let n = _mm256_sub_ps(rounded, set(ROUNDER));
    let r = _mm256_sub_ps(clamped, _mm256_mul_ps(n, set(LN2_HIGH)));
    let r = _mm256_sub_ps(r, _mm256_mul_ps(n, set(LN2_LOW)));
    let mut p = set(TAYLOR[0]);
    for coefficient in &TAYLOR[1..] {
        p = _mm256_add_ps(_mm256_mul_ps(p, r), set(*coefficient));
    }
    let e = _mm256_mul_ps(_mm256_mul_ps(p, r), r);
    let e = _mm256_add_ps(_mm256_add_ps(e, r), set(1.0));
    // The bits of `rounded` less those of the rounder are n; shifted up, all but n + 127 is lost.
    let bias = _mm256_set1_epi32(127 - ROUNDER.to_bits() as i32);
    let power = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_castps_si256(rounded), bias));
    let y = _mm256_mul_ps(e, _mm256_castsi256_ps(power));
    _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(x, least), y)
}
