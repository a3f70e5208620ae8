//! Block formats over sixteen rows; the layout in registers is that of the AVX2 kernels.

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
pub(super) type Groups = [__m512i; 8];

/// Splits 16 bytes of nibbles a row: low nibbles are weights 0 to 15, high ones 16 to 31.
///
/// # Safety
/// As [`Place::sixteen`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn nibbles(place: impl Place, at: usize) -> Groups {
    // SAFETY: by the caller's promise.
    let [a, b, c, d] = unsafe { place.sixteen(at) };
    let mask = _mm512_set1_epi8(15);
    let low = |x| _mm512_and_si512(x, mask);
    let high = |x| _mm512_and_si512(_mm512_srli_epi16::<4>(x), mask);
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
#[target_feature(enable = "avx512f")]
pub(super) fn four(q: &[i8; 32], g: usize) -> __m512i {
    let b: [u8; 4] = std::array::from_fn(|i| q[4 * g + i] as u8);
    _mm512_set1_epi32(i32::from_le_bytes(b))
}

/// Per lane `offset` plus the sum of unsigned weight times activation over 32, exact.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) fn dot(groups: &Groups, q: &[i8; 32], offset: i32) -> __m512i {
    let mut low = _mm512_set1_epi32(offset);
    let mut high = _mm512_setzero_si512();
    for g in 0..4 {
        low = _mm512_dpbusd_epi32(low, groups[g], four(q, g));
        high = _mm512_dpbusd_epi32(high, groups[g + 4], four(q, g + 4));
    }
    _mm512_add_epi32(low, high)
}

/// MXFP4: doubled values plus 12, and the exponents' distance to 128 in place.
pub(super) struct Mxfp4;

impl Format for Mxfp4 {
    const BYTES: usize = 17;
    type Block = (Groups, __m512i);

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn decode(place: impl Place, _: usize) -> Self::Block {
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
        let table = _mm512_broadcast_i32x4(table);
        // SAFETY: the block's first byte.
        let e = unsafe { place.byte(0) };
        let shift = _mm512_slli_epi32::<23>(_mm512_sub_epi32(e, _mm512_set1_epi32(128)));
        (codes.map(|c| _mm512_shuffle_epi8(table, c)), shift)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn step(acc: __m512, (groups, shift): Self::Block, x: &ActBlock) -> __m512 {
        let isum = dot(&groups, &x.q, -12 * x.sum());
        let bits = _mm512_add_epi32(_mm512_set1_epi32(x.d.to_bits() as i32), shift);
        let keep = _mm512_cmpgt_epi32_mask(bits, _mm512_set1_epi32(LEAST_SCALE_BITS - 1));
        let scale = _mm512_castsi512_ps(_mm512_maskz_mov_epi32(keep, bits));
        _mm512_add_ps(acc, _mm512_mul_ps(_mm512_cvtepi32_ps(isum), scale))
    }
}

/// Q8_0: bytes made unsigned by +128, and scales.
pub(super) struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = 34;
    type Block = (Groups, __m512);

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn decode(place: impl Place, _: usize) -> Self::Block {
        // SAFETY: a block is 2 + 32 bytes.
        let ([a, b, c, d], [e, f, g, h], scale) =
            unsafe { (place.sixteen(2), place.sixteen(18), place.f16(0)) };
        let flip = _mm512_set1_epi8(-128);
        (
            [a, b, c, d, e, f, g, h].map(|w| _mm512_xor_si512(w, flip)),
            scale,
        )
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn step(acc: __m512, (groups, scale): Self::Block, x: &ActBlock) -> __m512 {
        scaled(acc, dot(&groups, &x.q, -128 * x.sum()), scale, x.d)
    }
}

/// acc + (isum * (scale * d)), each operation rounded.
#[inline]
#[target_feature(enable = "avx512f")]
fn scaled(acc: __m512, isum: __m512i, scale: __m512, d: f32) -> __m512 {
    let s = _mm512_mul_ps(scale, _mm512_set1_ps(d));
    _mm512_add_ps(acc, _mm512_mul_ps(_mm512_cvtepi32_ps(isum), s))
}

/// Q4_0: nibbles and scales.
pub(super) struct Q4_0;

impl Format for Q4_0 {
    const BYTES: usize = 18;
    type Block = (Groups, __m512);

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn decode(place: impl Place, _: usize) -> Self::Block {
        // SAFETY: a block is 2 + 16 bytes.
        unsafe { (nibbles(place, 2), place.f16(0)) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn step(acc: __m512, (groups, scale): Self::Block, x: &ActBlock) -> __m512 {
        scaled(acc, dot(&groups, &x.q, -8 * x.sum()), scale, x.d)
    }
}

/// Q4_1: nibbles, scales and minima.
pub(super) struct Q4_1;

impl Format for Q4_1 {
    const BYTES: usize = 20;
    type Block = (Groups, __m512, __m512);

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn decode(place: impl Place, _: usize) -> Self::Block {
        // SAFETY: a block is 2 + 2 + 16 bytes.
        unsafe { (nibbles(place, 4), place.f16(0), place.f16(2)) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn step(acc: __m512, (groups, scale, min): Self::Block, x: &ActBlock) -> __m512 {
        let d = _mm512_set1_ps(x.d);
        let isum = _mm512_cvtepi32_ps(dot(&groups, &x.q, 0));
        let p1 = _mm512_mul_ps(isum, _mm512_mul_ps(scale, d));
        let p2 = _mm512_mul_ps(_mm512_set1_ps(x.sum() as f32), _mm512_mul_ps(min, d));
        _mm512_add_ps(acc, _mm512_add_ps(p1, p2))
    }
}
