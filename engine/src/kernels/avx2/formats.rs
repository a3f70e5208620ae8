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

use super::tile::{Format, ROWS};
use crate::formats::blocks::MXFP4_DOUBLED;
use crate::kernels::activations::ActBlock;
use crate::kernels::scalar::LEAST_SCALE_BITS;

/// Eight registers of four weights a row.
type Groups = [__m256i; 8];

/// Loads 16 bytes from each row and transposes: register g has bytes 4g to 4g + 3 of each row.
///
/// # Safety
/// Each pointer plus `offset` has 16 readable bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn transpose16(rows: [*const u8; ROWS], offset: usize) -> [__m256i; 4] {
    // SAFETY: by the caller's promise.
    let pair = |r: usize| unsafe {
        let low = _mm_loadu_si128(rows[r].add(offset).cast());
        let high = _mm_loadu_si128(rows[r + 4].add(offset).cast());
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
    };
    let (m0, m1, m2, m3) = (pair(0), pair(1), pair(2), pair(3));
    let a = _mm256_unpacklo_epi32(m0, m1);
    let b = _mm256_unpacklo_epi32(m2, m3);
    let c = _mm256_unpackhi_epi32(m0, m1);
    let d = _mm256_unpackhi_epi32(m2, m3);
    [
        _mm256_unpacklo_epi64(a, b),
        _mm256_unpackhi_epi64(a, b),
        _mm256_unpacklo_epi64(c, d),
        _mm256_unpackhi_epi64(c, d),
    ]
}

/// Splits 16 bytes of nibbles a row: low nibbles are weights 0 to 15, high ones 16 to 31.
///
/// # Safety
/// As [`transpose16`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn nibbles(rows: [*const u8; ROWS], offset: usize) -> Groups {
    // SAFETY: by the caller's promise.
    let [a, b, c, d] = unsafe { transpose16(rows, offset) };
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

/// The f16 at each pointer plus `offset`, widened.
///
/// # Safety
/// Two readable bytes there.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn f16_scales(rows: [*const u8; ROWS], offset: usize) -> __m256 {
    // SAFETY: by the caller's promise; the read is unaligned.
    let h = rows.map(|row| unsafe { row.add(offset).cast::<i16>().read_unaligned() });
    _mm256_cvtph_ps(_mm_setr_epi16(
        h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7],
    ))
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
    unsafe fn decode(rows: [*const u8; ROWS]) -> Self::Block {
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
        let (codes, table) = unsafe { (nibbles(rows, 1), _mm_loadu_si128(LUT.as_ptr().cast())) };
        let table = _mm256_broadcastsi128_si256(table);
        // SAFETY: the block's first byte.
        let e = rows.map(|row| i32::from(unsafe { *row }));
        let e = _mm256_setr_epi32(e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]);
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
    unsafe fn decode(rows: [*const u8; ROWS]) -> Self::Block {
        // SAFETY: a block is 2 + 32 bytes.
        let ([a, b, c, d], [e, f, g, h], scale) = unsafe {
            (
                transpose16(rows, 2),
                transpose16(rows, 18),
                f16_scales(rows, 0),
            )
        };
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
    unsafe fn decode(rows: [*const u8; ROWS]) -> Self::Block {
        // SAFETY: a block is 2 + 16 bytes.
        unsafe { (nibbles(rows, 2), f16_scales(rows, 0)) }
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
    unsafe fn decode(rows: [*const u8; ROWS]) -> Self::Block {
        // SAFETY: a block is 2 + 2 + 16 bytes.
        unsafe { (nibbles(rows, 4), f16_scales(rows, 0), f16_scales(rows, 2)) }
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
