//! Super-blocks of 256 weights over eight rows, in parts of 32.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;

use super::formats::{Groups, add_products, vnni_products};
use super::place::Place;
use super::tile::{Format, Panel};
use crate::kernels::activations::ActBlock;
use crate::kernels::array::array;

/// 32 bytes of each row.
///
/// # Safety
/// The machine has AVX2, FMA and F16C; the block has 32 bytes at `at`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn bytes(place: impl Place, at: usize) -> Groups {
    // SAFETY: by the caller's promise.
    let ([a, b, c, d], [e, f, g, h]) = unsafe { (place.sixteen(at), place.sixteen(at + 16)) };
    [a, b, c, d, e, f, g, h]
}

/// Some bits of each byte: those of `mask` once the byte is shifted right by `shift`. (`mask`
/// must cover no bits that come from the neighbour.)
#[inline]
#[target_feature(enable = "avx2")]
fn bits(bytes: &Groups, shift: usize, mask: i8) -> Groups {
    let (shift, mask) = (_mm_cvtsi32_si128(shift as i32), _mm256_set1_epi8(mask));
    array(|g| _mm256_and_si256(_mm256_srl_epi16(bytes[g], shift), mask))
}

/// dw * scale and dmin * min of run `part`, from the first 16 bytes of a Q4_K or Q5_K block.
///
/// # Safety
/// The machine has AVX2, FMA and F16C; the block has 16 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn scales(place: impl Place, part: usize) -> (__m256, __m256) {
    // SAFETY: by the caller's promise.
    let (first, second, third) = unsafe { (place.four(4), place.four(8), place.four(12)) };
    let byte = |word: __m256i, shift: usize, mask: i32| {
        let shifted = _mm256_srl_epi32(word, _mm_cvtsi32_si128(shift as i32));
        _mm256_and_si256(shifted, _mm256_set1_epi32(mask))
    };
    let (scale, min) = if part < 4 {
        let at = 8 * part;
        (byte(first, at, 63), byte(second, at, 63))
    } else {
        let at = 8 * (part - 4);
        (
            _mm256_or_si256(byte(third, at, 15), byte(first, at + 2, 48)),
            _mm256_or_si256(byte(third, at + 4, 15), byte(second, at + 2, 48)),
        )
    };
    // SAFETY: as above.
    let (dw, dmin) = unsafe { (place.f16(0), place.f16(2)) };
    (
        _mm256_mul_ps(dw, _mm256_cvtepi32_ps(scale)),
        _mm256_mul_ps(dmin, _mm256_cvtepi32_ps(min)),
    )
}

/// acc - min * (sumq * d) + scale * (isum * d), each sum fused.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_run(
    acc: __m256,
    isum: __m256i,
    (scale, min): (__m256, __m256),
    x: &ActBlock,
    sum: i32,
) -> __m256 {
    let acc = _mm256_fnmadd_ps(min, _mm256_set1_ps(sum as f32 * x.d), acc);
    let product = _mm256_mul_ps(_mm256_cvtepi32_ps(isum), _mm256_set1_ps(x.d));
    _mm256_fmadd_ps(scale, product, acc)
}

/// Q4_K: nibbles; dw * scale and dmin * min.
pub(super) struct Q4K;

impl Format for Q4K {
    const BYTES: usize = 144;
    const PARTS: usize = 8;
    type Scale = (__m256, __m256);

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn decode(place: impl Place, part: usize) -> (Groups, Self::Scale) {
        // SAFETY: a block is 16 bytes, then 32 of nibbles to two parts.
        unsafe {
            let nibbles = bytes(place, 16 + 32 * (part / 2));
            (bits(&nibbles, 4 * (part % 2), 15), scales(place, part))
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const PLAIN: bool>(
        acc: __m256,
        isum: __m256i,
        scale: Self::Scale,
        x: &ActBlock,
    ) -> __m256 {
        add_run(acc, isum, scale, x, x.sum())
    }
}

/// Q5_K: codes of five bits, taken less 16 so that their products' sums stay within an i16;
/// dw * scale and dmin * min.
pub(super) struct Q5K;

impl Format for Q5K {
    const BYTES: usize = 176;
    const PARTS: usize = 8;
    const OFFSET: i16 = 16;
    type Scale = (__m256, __m256);

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn decode(place: impl Place, part: usize) -> (Groups, Self::Scale) {
        // SAFETY: a block is 16 bytes, 32 of fifth bits, then 32 of nibbles to two parts.
        let (nibbles, fifths, scales) = unsafe {
            let nibbles = bytes(place, 48 + 32 * (part / 2));
            (nibbles, bytes(place, 16), scales(place, part))
        };
        let low = bits(&nibbles, 4 * (part % 2), 15);
        let high = bits(&fifths, part, 1);
        let code = |i: usize| _mm256_or_si256(low[i], _mm256_slli_epi16::<4>(high[i]));
        (array(code), scales)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const PLAIN: bool>(
        acc: __m256,
        isum: __m256i,
        scale: Self::Scale,
        x: &ActBlock,
    ) -> __m256 {
        let sum = x.sum();
        let isum = _mm256_add_epi32(isum, _mm256_set1_epi32(16 * sum));
        add_run(acc, isum, scale, x, sum)
    }
}

/// Q6_K: codes of six bits; both halves' scales, twice in each 32-bit lane, and dw.
pub(super) struct Q6K;

impl Format for Q6K {
    const BYTES: usize = 210;
    const PARTS: usize = 8;
    type Scale = ([__m256i; 2], __m256);

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn decode(place: impl Place, part: usize) -> (Groups, Self::Scale) {
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
        let code = |i: usize| _mm256_or_si256(low[i], _mm256_slli_epi16::<4>(high[i]));
        // The part's two scales come to the top of the lane one after the other.
        let scales = _mm256_srl_epi32(scales, _mm_cvtsi32_si128(16 * (part % 2) as i32));
        let twice = |top: __m256i| {
            let low = _mm256_srli_epi32::<16>(_mm256_srai_epi16::<8>(top));
            _mm256_or_si256(low, _mm256_slli_epi32::<16>(low))
        };
        let scales = [
            twice(_mm256_slli_epi32::<24>(scales)),
            twice(_mm256_slli_epi32::<16>(scales)),
        ];
        (array(code), (scales, dw))
    }

    /// Each half's sum of (code - 32) * q stays within the two i16 of a lane (8 * 32 * 127 is below
    /// 2^15), and meets its scale where these are added.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dots<const T: usize, const H: usize>(
        panel: &Panel<H>,
        scales: &[Self::Scale; H],
        x: &[ActBlock; T],
    ) -> [[__m256i; H]; T] {
        let offsets: [_; T] = array(|t| offsets(&x[t]));
        let mut isums = [[_mm256_setzero_si256(); H]; T];
        for half in 0..2 {
            let mut sums: [_; T] = array(|t| [offsets[t][half]; H]);
            add_products(&mut sums, &panel[4 * half..][..4], 4 * half, x);
            for (isums, sums) in isums.iter_mut().zip(sums) {
                for ((isum, sum), (scales, _)) in isums.iter_mut().zip(sums).zip(scales) {
                    *isum = _mm256_add_epi32(*isum, _mm256_madd_epi16(sum, scales[half]));
                }
            }
        }
        isums
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
    unsafe fn dots_vnni<const T: usize, const H: usize>(
        panel: &Panel<H>,
        scales: &[Self::Scale; H],
        x: &[ActBlock; T],
    ) -> [[__m256i; H]; T] {
        let mut isums = [[_mm256_setzero_si256(); H]; T];
        for half in 0..2 {
            let scales: [_; H] = array(|h| _mm256_srai_epi32::<16>(scales[h].0[half]));
            let mut sums: [_; T] = array(|t| {
                let q = &x[t].q.as_chunks::<16>().0[half];
                let sum: i32 = q.iter().map(|q| i32::from(*q)).sum();
                [_mm256_set1_epi32(-32 * sum); H]
            });
            vnni_products(&mut sums, &panel[4 * half..][..4], 4 * half, x);
            for (isums, sums) in isums.iter_mut().zip(sums) {
                for ((isum, sum), scale) in isums.iter_mut().zip(sums).zip(scales) {
                    *isum = _mm256_add_epi32(*isum, _mm256_mullo_epi32(sum, scale));
                }
            }
        }
        isums
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const PLAIN: bool>(
        acc: __m256,
        isum: __m256i,
        (_, dw): Self::Scale,
        x: &ActBlock,
    ) -> __m256 {
        let s = _mm256_mul_ps(dw, _mm256_set1_ps(x.d));
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum), s, acc)
    }
}

/// What an offset of -32 on 16 weights adds to the two i16 of a lane, for each half of 32
/// activations; wrapped around, as the sums are.
#[inline]
#[target_feature(enable = "avx2")]
fn offsets(x: &ActBlock) -> [__m256i; 2] {
    // SAFETY: the 32 bytes of an array.
    let q = unsafe { _mm256_loadu_si256(x.q.as_ptr().cast()) };
    // Pairs of neighbours; within each half, every second of them belongs to the same i16.
    let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
    let fours = _mm256_add_epi16(pairs, _mm256_shuffle_epi32::<0b01_00_11_10>(pairs));
    let sums = _mm256_add_epi16(fours, _mm256_shuffle_epi32::<0b10_11_00_01>(fours));
    let offset = _mm256_mullo_epi16(sums, _mm256_set1_epi16(-32));
    [
        _mm256_permute2x128_si256::<0x00>(offset, offset),
        _mm256_permute2x128_si256::<0x11>(offset, offset),
    ]
}
