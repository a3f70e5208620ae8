//! Super-blocks of 256 weights over sixteen rows, in parts of 32; the layout in registers is that
//! of the AVX2 kernels.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;

use super::formats::{Groups, dot, four};
use super::place::Place;
use super::tile::Format;
use crate::kernels::activations::ActBlock;

/// 32 bytes of each row.
///
/// # Safety
/// The machine has AVX-512 F, BW and VNNI; the block has 32 bytes at `at`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn bytes(place: impl Place, at: usize) -> Groups {
    // SAFETY: by the caller's promise.
    let ([a, b, c, d], [e, f, g, h]) = unsafe { (place.sixteen(at), place.sixteen(at + 16)) };
    [a, b, c, d, e, f, g, h]
}

/// Some bits of each byte: those of `mask` once the byte is shifted right by `shift`. (`mask`
/// must cover no bits that come from the neighbour.)
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn bits(bytes: &Groups, shift: usize, mask: i8) -> Groups {
    let (shift, mask) = (_mm_cvtsi32_si128(shift as i32), _mm512_set1_epi8(mask));
    bytes.map(|b| _mm512_and_si512(_mm512_srl_epi16(b, shift), mask))
}

/// dw * scale and dmin * min of run `part`, from the first 16 bytes of a Q4_K or Q5_K block.
///
/// # Safety
/// The machine has AVX-512 F, BW and VNNI; the block has 16 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn scales(place: impl Place, part: usize) -> (__m512, __m512) {
    // SAFETY: by the caller's promise.
    let (first, second, third) = unsafe { (place.four(4), place.four(8), place.four(12)) };
    let byte = |word: __m512i, shift: usize, mask: i32| {
        let shifted = _mm512_srl_epi32(word, _mm_cvtsi32_si128(shift as i32));
        _mm512_and_si512(shifted, _mm512_set1_epi32(mask))
    };
    let (scale, min) = if part < 4 {
        let at = 8 * part;
        (byte(first, at, 63), byte(second, at, 63))
    } else {
        let at = 8 * (part - 4);
        (
            _mm512_or_si512(byte(third, at, 15), byte(first, at + 2, 48)),
            _mm512_or_si512(byte(third, at + 4, 15), byte(second, at + 2, 48)),
        )
    };
    // SAFETY: as above.
    let (dw, dmin) = unsafe { (place.f16(0), place.f16(2)) };
    (
        _mm512_mul_ps(dw, _mm512_cvtepi32_ps(scale)),
        _mm512_mul_ps(dmin, _mm512_cvtepi32_ps(min)),
    )
}

/// acc - min * (sumq * d) + scale * (isum * d), each sum fused.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_run(acc: __m512, groups: &Groups, (scale, min): (__m512, __m512), x: &ActBlock) -> __m512 {
    let acc = _mm512_fnmadd_ps(min, _mm512_set1_ps(x.sum() as f32 * x.d), acc);
    let isum = _mm512_cvtepi32_ps(dot(groups, &x.q, 0));
    _mm512_fmadd_ps(scale, _mm512_mul_ps(isum, _mm512_set1_ps(x.d)), acc)
}

/// Q4_K: nibbles; dw * scale and dmin * min.
pub(super) struct Q4K;

impl Format for Q4K {
    const BYTES: usize = 144;
    const PARTS: usize = 8;
    type Block = (Groups, (__m512, __m512));

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn decode(place: impl Place, part: usize) -> Self::Block {
        // SAFETY: a block is 16 bytes, then 32 of nibbles to two parts.
        unsafe {
            let nibbles = bytes(place, 16 + 32 * (part / 2));
            (bits(&nibbles, 4 * (part % 2), 15), scales(place, part))
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn step(acc: __m512, (groups, scales): Self::Block, x: &ActBlock) -> __m512 {
        add_run(acc, &groups, scales, x)
    }
}

/// Q5_K: codes of five bits; dw * scale and dmin * min.
pub(super) struct Q5K;

impl Format for Q5K {
    const BYTES: usize = 176;
    const PARTS: usize = 8;
    type Block = (Groups, (__m512, __m512));

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn decode(place: impl Place, part: usize) -> Self::Block {
        // SAFETY: a block is 16 bytes, 32 of fifth bits, then 32 of nibbles to two parts.
        let (nibbles, fifths, scales) = unsafe {
            let nibbles = bytes(place, 48 + 32 * (part / 2));
            (nibbles, bytes(place, 16), scales(place, part))
        };
        let low = bits(&nibbles, 4 * (part % 2), 15);
        let high = bits(&fifths, part, 1);
        let code = |i: usize| _mm512_or_si512(low[i], _mm512_slli_epi16::<4>(high[i]));
        (std::array::from_fn(code), scales)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn step(acc: __m512, (groups, scales): Self::Block, x: &ActBlock) -> __m512 {
        add_run(acc, &groups, scales, x)
    }
}

/// Q6_K: codes of six bits; both halves' scales and dw.
pub(super) struct Q6K;

impl Format for Q6K {
    const BYTES: usize = 210;
    const PARTS: usize = 8;
    type Block = (Groups, [__m512i; 2], __m512);

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn decode(place: impl Place, part: usize) -> Self::Block {
        let (half, quarter) = (part / 4, part % 4);
        // SAFETY: a block is 128 bytes of nibbles, 64 of pairs, 16 of scales and an f16.
        let (nibbles, pairs, scales, dw) = unsafe {
            let nibbles = bytes(place, 64 * half + 32 * (quarter % 2));
            let scales = place.four(192 + 4 * (part / 2));
            (
                nibbles,
                bytes(place, 128 + 32 * half),
                scales,
                place.f16(208),
            )
        };
        let low = bits(&nibbles, 4 * (quarter / 2), 15);
        let high = bits(&pairs, 2 * quarter, 3);
        let code = |i: usize| _mm512_or_si512(low[i], _mm512_slli_epi16::<4>(high[i]));
        // The part's two scales come to the top of the lane one after the other.
        let scales = _mm512_srl_epi32(scales, _mm_cvtsi32_si128(16 * (part % 2) as i32));
        let scales = [
            _mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(scales)),
            _mm512_srai_epi32::<24>(_mm512_slli_epi32::<16>(scales)),
        ];
        (std::array::from_fn(code), scales, dw)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn step(acc: __m512, (groups, scales, dw): Self::Block, x: &ActBlock) -> __m512 {
        let mut isum = _mm512_setzero_si512();
        for (half, scale) in scales.into_iter().enumerate() {
            let q = &x.q[16 * half..][..16];
            let sum: i32 = q.iter().map(|q| i32::from(*q)).sum();
            let mut dot = _mm512_set1_epi32(-32 * sum);
            for g in 0..4 {
                let g = 4 * half + g;
                dot = _mm512_dpbusd_epi32(dot, groups[g], four(&x.q, g));
            }
            isum = _mm512_add_epi32(isum, _mm512_mullo_epi32(dot, scale));
        }
        let s = _mm512_mul_ps(dw, _mm512_set1_ps(x.d));
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum), s, acc)
    }
}
