//! Block formats over eight rows.
//!
//! A block's 32 weights become eight registers of bytes: register g holds weights 4g to 4g + 3
//! of each row, a row in each 32-bit lane. Against the same four activations in every lane,
//! `maddubs` then sums within rows only, and no horizontal step is needed.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;

use super::place::Place;
use super::tile::Format;
use crate::formats::blocks::MXFP4_DOUBLED;
use crate::kernels::activations::ActBlock;
use crate::kernels::scalar::LEAST_SCALE_BITS;

/// Eight registers of four weights a row.
type Groups = [__m256i; 8];

/// Splits 16 bytes of nibbles a row: low nibbles are weights 0 to 15, high ones 16 to 31.
///
/// # Safety
/// As [`Place::sixteen`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn nibbles(place: impl Place, at: usize) -> Groups {
    // SAFETY: by the caller's promise.
    let [a, b, c, d] = unsafe { place.sixteen(at) };
    let mask = _mm256_set1_epi8(15);
    let low = |x| _mm256_and_si256(x, mask);
    let high = |x| _mm256_and_si256(_mm256_srli_epi16::<4>(x), mask);
    [
        low(a),
        low(b),
        low(c),
        low(d),
        high(a),
        high(b),
        high(c),
        high(d),
    ]
}

/// Activations 4g to 4g + 3 in every lane.
#[inline]
#[target_feature(enable = "avx2")]
fn four(q: &[i8; 32], g: usize) -> __m256i {
    let b: [u8; 4] = std::array::from_fn(|i| q[4 * g + i] as u8);
    _mm256_set1_epi32(i32::from_le_bytes(b))
}

/// Per lane the sum of unsigned weight times activation over 32. Weights are at most 24, so the
/// pairs of four groups stay within 4 * 2 * 24 * 127 = 24384, an i16.
#[inline]
#[target_feature(enable = "avx2")]
fn small_dot(groups: &Groups, q: &[i8; 32]) -> __m256i {
    let product = |g: usize| _mm256_maddubs_epi16(groups[g], four(q, g));
    let add = |a, b| _mm256_add_epi16(a, b);
    let low = add(add(product(0), product(1)), add(product(2), product(3)));
    let high = add(add(product(4), product(5)), add(product(6), product(7)));
    let ones = _mm256_set1_epi16(1);
    _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones))
}

/// MXFP4: doubled values plus 12, and the exponents' distance to 128 in place.
pub(super) struct Mxfp4;

impl Format for Mxfp4 {
    const BYTES: usize = 17;
    type Block = (Groups, __m256i);

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn decode(place: impl Place) -> Self::Block {
        const LUT: [i8; 16] = {
            let mut lut = MXFP4_DOUBLED;
            let mut i = 0;
            while i < 16 {
                lut[i] += 12;
                i += 1;
            }
            lut
        };
        // SAFETY: a block is 1 + 16 bytes, and the table is 16 bytes.
        let (codes, table) = unsafe { (nibbles(place, 1), _mm_loadu_si128(LUT.as_ptr().cast())) };
        let table = _mm256_broadcastsi128_si256(table);
        // SAFETY: the block's first byte.
        let e = unsafe { place.byte(0) };
        let shift = _mm256_slli_epi32::<23>(_mm256_sub_epi32(e, _mm256_set1_epi32(128)));
        (codes.map(|c| _mm256_shuffle_epi8(table, c)), shift)
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn step(acc: __m256, (groups, shift): Self::Block, x: ActBlock<'_>) -> __m256 {
        let offset = _mm256_set1_epi32(12 * x.sumq);
        let isum = _mm256_sub_epi32(small_dot(&groups, x.q), offset);
        let bits = _mm256_add_epi32(_mm256_set1_epi32(x.d.to_bits() as i32), shift);
        let keep = _mm256_cmpgt_epi32(bits, _mm256_set1_epi32(LEAST_SCALE_BITS - 1));
        let scale = _mm256_castsi256_ps(_mm256_and_si256(bits, keep));
        _mm256_add_ps(acc, _mm256_mul_ps(_mm256_cvtepi32_ps(isum), scale))
    }
}

/// Q8_0: signed bytes and scales.
pub(super) struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = 34;
    type Block = (Groups, __m256);

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn decode(place: impl Place) -> Self::Block {
        // SAFETY: a block is 2 + 32 bytes.
        let ([a, b, c, d], [e, f, g, h], scale) =
            unsafe { (place.sixteen(2), place.sixteen(18), place.f16(0)) };
        ([a, b, c, d, e, f, g, h], scale)
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn step(acc: __m256, (groups, scale): Self::Block, x: ActBlock<'_>) -> __m256 {
        let ones = _mm256_set1_epi16(1);
        // |w| <= 128 as unsigned, times q with w's sign: a pair is at most 2 * 128 * 127 =
        // 32512, so `maddubs` does not saturate.
        let product = |g: usize| {
            let w = groups[g];
            let q = _mm256_sign_epi8(four(x.q, g), w);
            _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(w), q), ones)
        };
        let add = |a, b| _mm256_add_epi32(a, b);
        let low = add(add(product(0), product(1)), add(product(2), product(3)));
        let high = add(add(product(4), product(5)), add(product(6), product(7)));
        scaled(acc, add(low, high), scale, x.d)
    }
}

/// acc + (isum * (scale * d)), each operation rounded.
#[inline]
#[target_feature(enable = "avx2")]
fn scaled(acc: __m256, isum: __m256i, scale: __m256, d: f32) -> __m256 {
    let s = _mm256_mul_ps(scale, _mm256_set1_ps(d));
    _mm256_add_ps(acc, _mm256_mul_ps(_mm256_cvtepi32_ps(isum), s))
}

/// Q4_0: nibbles and scales.
pub(super) struct Q4_0;

impl Format for Q4_0 {
    const BYTES: usize = 18;
    type Block = (Groups, __m256);

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn decode(place: impl Place) -> Self::Block {
        // SAFETY: a block is 2 + 16 bytes.
        unsafe { (nibbles(place, 2), place.f16(0)) }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn step(acc: __m256, (groups, scale): Self::Block, x: ActBlock<'_>) -> __m256 {
        let offset = _mm256_set1_epi32(8 * x.sumq);
        let isum = _mm256_sub_epi32(small_dot(&groups, x.q), offset);
        scaled(acc, isum, scale, x.d)
    }
}

/// Q4_1: nibbles, scales and minima.
pub(super) struct Q4_1;

impl Format for Q4_1 {
    const BYTES: usize = 20;
    type Block = (Groups, __m256, __m256);

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn decode(place: impl Place) -> Self::Block {
        // SAFETY: a block is 2 + 2 + 16 bytes.
        unsafe { (nibbles(place, 4), place.f16(0), place.f16(2)) }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn step(acc: __m256, (groups, scale, min): Self::Block, x: ActBlock<'_>) -> __m256 {
        let d = _mm256_set1_ps(x.d);
        let isum = _mm256_cvtepi32_ps(small_dot(&groups, x.q));
        let p1 = _mm256_mul_ps(isum, _mm256_mul_ps(scale, d));
        let p2 = _mm256_mul_ps(_mm256_set1_ps(x.sumq as f32), _mm256_mul_ps(min, d));
        _mm256_add_ps(acc, _mm256_add_ps(p1, p2))
    }
}
