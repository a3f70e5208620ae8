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
use super::tile::{Format, Panel};
use crate::formats::blocks::MXFP4_DOUBLED;
use crate::kernels::activations::ActBlock;
use crate::kernels::array::array;
use crate::kernels::scalar::LEAST_SCALE_BITS;

/// Eight registers of four weights a row.
pub(super) type Groups = [__m256i; 8];

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
pub(super) fn four(x: &ActBlock, g: usize) -> __m256i {
    let [a, b, c, d] = x.q.as_chunks::<4>().0[g];
    _mm256_set1_epi32(i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8]))
}

/// Adds the pairs of products of the weights in some registers, from group `first` on, with each
/// token's activations to 16-bit sums, which may wrap around.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add_products<const T: usize, const H: usize>(
    sums: &mut [[__m256i; H]; T],
    groups: &[[__m256i; H]],
    first: usize,
    x: &[ActBlock; T],
) {
    for (g, weights) in groups.iter().enumerate() {
        for (sums, x) in sums.iter_mut().zip(x) {
            let q = four(x, first + g);
            for (sum, w) in sums.iter_mut().zip(weights) {
                *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(*w, q));
            }
        }
    }
}

/// Per 32-bit lane the sum over 32 of (weight - offset) * activation, for unsigned weights.
///
/// `maddubs` adds neighbours, which lies within an i16; sums of those may wrap around, and the
/// halves of the activations' sum times -offset, wrapped as well, bring them to their true value
/// when that is an i16: 16 times the greatest |weight - offset| times 127 is below 2^15 for each
/// format that comes here.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn small_dots<const T: usize, const H: usize>(
    offset: i16,
    panel: &Panel<H>,
    x: &[ActBlock; T],
) -> [[__m256i; H]; T] {
    let mut sums = [[_mm256_setzero_si256(); H]; T];
    if offset != 0 {
        for (sums, x) in sums.iter_mut().zip(x) {
            let [a, b] = x.halves.map(i16::to_le_bytes);
            let halves = _mm256_set1_epi32(i32::from_le_bytes([a[0], a[1], b[0], b[1]]));
            *sums = [_mm256_mullo_epi16(halves, _mm256_set1_epi16(-offset)); H];
        }
    }
    add_products(&mut sums, panel, 0, x);
    let ones = _mm256_set1_epi16(1);
    array(|t| array(|h| _mm256_madd_epi16(sums[t][h], ones)))
}

/// As [`small_dots`] by VNNI, whose sums have 32 bits: -offset times the activations' sum is where
/// they begin.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
pub(super) fn vnni_dots<const T: usize, const H: usize>(
    offset: i16,
    panel: &Panel<H>,
    x: &[ActBlock; T],
) -> [[__m256i; H]; T] {
    let mut sums: [_; T] = array(|t| {
        let start = _mm256_set1_epi32(-i32::from(offset) * x[t].sum());
        [start; H]
    });
    vnni_products(&mut sums, panel, 0, x);
    sums
}

/// As [`add_products`], to 32-bit sums.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
pub(super) fn vnni_products<const T: usize, const H: usize>(
    sums: &mut [[__m256i; H]; T],
    groups: &[[__m256i; H]],
    first: usize,
    x: &[ActBlock; T],
) {
    for (g, weights) in groups.iter().enumerate() {
        for (sums, x) in sums.iter_mut().zip(x) {
            let q = four(x, first + g);
            for (sum, w) in sums.iter_mut().zip(weights) {
                *sum = _mm256_dpbusd_avx_epi32(*sum, *w, q);
            }
        }
    }
}

/// MXFP4: doubled values plus 12, and the bits that 2^(e - 128) has as an f32 where it is normal.
pub(super) struct Mxfp4;

/// The bits of 1.0.
const ONE: i32 = 127 << 23;

impl Format for Mxfp4 {
    const BYTES: usize = 17;
    const OFFSET: i16 = 12;
    type Scale = __m256i;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn decode(place: impl Place, _: usize) -> (Groups, __m256i) {
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
        let scale = _mm256_slli_epi32::<23>(_mm256_sub_epi32(e, _mm256_set1_epi32(1)));
        (array(|g| _mm256_shuffle_epi8(table, codes[g])), scale)
    }

    /// Every scale 2^(e - 128) is normal, and its product with any activation's scale is 0 or at
    /// least 2^-100.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn is_plain(scale: __m256i, least: f32) -> bool {
        let least = (LEAST_SCALE_BITS - (least.to_bits() as i32 - ONE)).max(1 << 23);
        let too_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(least), scale);
        _mm256_testz_si256(too_small, too_small) != 0
    }

    /// isum * s is exact, so that a fused addition gives the same bits.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const PLAIN: bool>(
        acc: __m256,
        isum: __m256i,
        scale: __m256i,
        x: &ActBlock,
    ) -> __m256 {
        let s = if PLAIN {
            _mm256_mul_ps(_mm256_castsi256_ps(scale), _mm256_set1_ps(x.d))
        } else {
            let d = _mm256_set1_epi32((x.d.to_bits() as i32).wrapping_sub(ONE));
            let bits = _mm256_add_epi32(d, scale);
            let keep = _mm256_cmpgt_epi32(bits, _mm256_set1_epi32(LEAST_SCALE_BITS - 1));
            _mm256_castsi256_ps(_mm256_and_si256(bits, keep))
        };
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum), s, acc)
    }
}

/// Q8_0: signed bytes and scales.
pub(super) struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = 34;
    type Scale = __m256;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn decode(place: impl Place, _: usize) -> (Groups, __m256) {
        // SAFETY: a block is 2 + 32 bytes.
        let ([a, b, c, d], [e, f, g, h], scale) =
            unsafe { (place.sixteen(2), place.sixteen(18), place.f16(0)) };
        ([a, b, c, d, e, f, g, h], scale)
    }

    /// |w| <= 128 as unsigned, times q with w's sign: a pair is at most 2 * 128 * 127 = 32512, so
    /// `maddubs` does not saturate.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dots<const T: usize, const H: usize>(
        panel: &Panel<H>,
        _: &[Self::Scale; H],
        x: &[ActBlock; T],
    ) -> [[__m256i; H]; T] {
        let ones = _mm256_set1_epi16(1);
        let mut sums = [[_mm256_setzero_si256(); H]; T];
        for (g, weights) in panel.iter().enumerate() {
            let sizes: [__m256i; H] = array(|h| _mm256_abs_epi8(weights[h]));
            for (sums, x) in sums.iter_mut().zip(x) {
                let q = four(x, g);
                for h in 0..H {
                    let q = _mm256_sign_epi8(q, weights[h]);
                    let pairs = _mm256_maddubs_epi16(sizes[h], q);
                    sums[h] = _mm256_add_epi32(sums[h], _mm256_madd_epi16(pairs, ones));
                }
            }
        }
        sums
    }

    /// With its sign's bit turned a weight is itself plus 128, and unsigned.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
    unsafe fn dots_vnni<const T: usize, const H: usize>(
        panel: &Panel<H>,
        _: &[Self::Scale; H],
        x: &[ActBlock; T],
    ) -> [[__m256i; H]; T] {
        let sign = _mm256_set1_epi8(i8::MIN);
        let panel = array(|g| array(|h| _mm256_xor_si256(panel[g][h], sign)));
        vnni_dots(128, &panel, x)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const PLAIN: bool>(
        acc: __m256,
        isum: __m256i,
        scale: __m256,
        x: &ActBlock,
    ) -> __m256 {
        scaled(acc, isum, scale, x.d)
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
    const OFFSET: i16 = 8;
    type Scale = __m256;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn decode(place: impl Place, _: usize) -> (Groups, __m256) {
        // SAFETY: a block is 2 + 16 bytes.
        unsafe { (nibbles(place, 2), place.f16(0)) }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const PLAIN: bool>(
        acc: __m256,
        isum: __m256i,
        scale: __m256,
        x: &ActBlock,
    ) -> __m256 {
        scaled(acc, isum, scale, x.d)
    }
}

/// Q4_1: nibbles, scales and minima.
pub(super) struct Q4_1;

impl Format for Q4_1 {
    const BYTES: usize = 20;
    type Scale = (__m256, __m256);

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn decode(place: impl Place, _: usize) -> (Groups, Self::Scale) {
        // SAFETY: a block is 2 + 2 + 16 bytes.
        unsafe { (nibbles(place, 4), (place.f16(0), place.f16(2))) }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const PLAIN: bool>(
        acc: __m256,
        isum: __m256i,
        (scale, min): Self::Scale,
        x: &ActBlock,
    ) -> __m256 {
        let d = _mm256_set1_ps(x.d);
        let p1 = _mm256_mul_ps(_mm256_cvtepi32_ps(isum), _mm256_mul_ps(scale, d));
        let p2 = _mm256_mul_ps(_mm256_set1_ps(x.sum() as f32), _mm256_mul_ps(min, d));
        _mm256_add_ps(acc, _mm256_add_ps(p1, p2))
    }
}
