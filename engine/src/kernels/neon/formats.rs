//! Block formats over four rows. Weights become signed bytes, so that one instruction multiplies
//! and sums them: every sum of 32 products fits an i32 many times over.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::aarch64::*;

use super::place::Place;
use super::tile::{Format, Groups};
use crate::formats::blocks::MXFP4_DOUBLED;
use crate::kernels::activations::ActBlock;
use crate::kernels::scalar::LEAST_SCALE_BITS;

/// Splits 16 bytes of nibbles a row: low nibbles are weights 0 to 15, high ones 16 to 31.
///
/// # Safety
/// As [`Place::sixteen`].
#[inline]
#[target_feature(enable = "neon")]
unsafe fn nibbles(place: impl Place, at: usize) -> [uint8x16_t; 8] {
    // SAFETY: by the caller's promise.
    let [a, b, c, d] = unsafe { place.sixteen(at) };
    let low = |x| vandq_u8(x, vdupq_n_u8(15));
    let high = |x| vshrq_n_u8::<4>(x);
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

/// 32 bytes of each row.
///
/// # Safety
/// The block has 32 bytes at `at`.
#[inline]
#[target_feature(enable = "neon")]
pub(super) unsafe fn bytes(place: impl Place, at: usize) -> [uint8x16_t; 8] {
    // SAFETY: by the caller's promise.
    let ([a, b, c, d], [e, f, g, h]) = unsafe { (place.sixteen(at), place.sixteen(at + 16)) };
    [a, b, c, d, e, f, g, h]
}

/// Bytes less `offset`, as signed ones.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn signed(bytes: [uint8x16_t; 8], offset: i8) -> Groups {
    bytes.map(|b| vsubq_s8(vreinterpretq_s8_u8(b), vdupq_n_s8(offset)))
}

/// MXFP4: doubled values, and (e - 128) << 23, what the scale adds to the bits of another.
pub(super) struct Mxfp4;

impl Format for Mxfp4 {
    const BYTES: usize = 17;
    type Scale = int32x4_t;

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn decode(place: impl Place, _: usize) -> (Groups, int32x4_t) {
        // SAFETY: a block is 1 + 16 bytes, and the table is 16 bytes.
        let (codes, e, table) = unsafe {
            (
                nibbles(place, 1),
                place.byte(0),
                vld1q_s8(MXFP4_DOUBLED.as_ptr()),
            )
        };
        let e = vsubq_s32(vreinterpretq_s32_u32(e), vdupq_n_s32(128));
        (codes.map(|c| vqtbl1q_s8(table, c)), vshlq_n_s32::<23>(e))
    }

    /// isum * s is exact, so that a fused addition gives the same bits.
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add(
        acc: float32x4_t,
        isum: int32x4_t,
        scale: int32x4_t,
        x: &ActBlock,
    ) -> float32x4_t {
        let bits = vaddq_s32(vdupq_n_s32(x.d.to_bits() as i32), scale);
        let keep = vcgeq_s32(bits, vdupq_n_s32(LEAST_SCALE_BITS));
        let s = vandq_u32(vreinterpretq_u32_s32(bits), keep);
        vfmaq_f32(acc, vcvtq_f32_s32(isum), vreinterpretq_f32_u32(s))
    }
}

/// Q8_0: signed bytes and scales.
pub(super) struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = 34;
    type Scale = float32x4_t;

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn decode(place: impl Place, _: usize) -> (Groups, float32x4_t) {
        // SAFETY: a block is 2 + 32 bytes.
        let (weights, scale) = unsafe { (bytes(place, 2), place.f16(0)) };
        (weights.map(|w| vreinterpretq_s8_u8(w)), scale)
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add(
        acc: float32x4_t,
        isum: int32x4_t,
        scale: float32x4_t,
        x: &ActBlock,
    ) -> float32x4_t {
        scaled(acc, isum, scale, x.d)
    }
}

/// acc + (isum * (scale * d)), each operation rounded.
#[inline]
#[target_feature(enable = "neon")]
fn scaled(acc: float32x4_t, isum: int32x4_t, scale: float32x4_t, d: f32) -> float32x4_t {
    let s = vmulq_n_f32(scale, d);
    vaddq_f32(acc, vmulq_f32(vcvtq_f32_s32(isum), s))
}

/// Q4_0: nibbles less 8, and scales.
pub(super) struct Q4_0;

impl Format for Q4_0 {
    const BYTES: usize = 18;
    type Scale = float32x4_t;

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn decode(place: impl Place, _: usize) -> (Groups, float32x4_t) {
        // SAFETY: a block is 2 + 16 bytes.
        unsafe { (signed(nibbles(place, 2), 8), place.f16(0)) }
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add(
        acc: float32x4_t,
        isum: int32x4_t,
        scale: float32x4_t,
        x: &ActBlock,
    ) -> float32x4_t {
        scaled(acc, isum, scale, x.d)
    }
}

/// Q4_1: nibbles, scales and minima.
pub(super) struct Q4_1;

impl Format for Q4_1 {
    const BYTES: usize = 20;
    type Scale = (float32x4_t, float32x4_t);

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn decode(place: impl Place, _: usize) -> (Groups, Self::Scale) {
        // SAFETY: a block is 2 + 2 + 16 bytes.
        unsafe {
            let scales = (place.f16(0), place.f16(2));
            (signed(nibbles(place, 4), 0), scales)
        }
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add(
        acc: float32x4_t,
        isum: int32x4_t,
        (scale, min): Self::Scale,
        x: &ActBlock,
    ) -> float32x4_t {
        let p1 = vmulq_f32(vcvtq_f32_s32(isum), vmulq_n_f32(scale, x.d));
        let p2 = vmulq_n_f32(vmulq_n_f32(min, x.d), x.sum() as f32);
        vaddq_f32(acc, vaddq_f32(p1, p2))
    }
}
