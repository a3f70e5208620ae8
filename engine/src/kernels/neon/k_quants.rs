//! Super-blocks of 256 weights over four rows, in parts of 32.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::aarch64::*;

use super::formats::{bytes, signed};
use super::place::Place;
use super::tile::{Format, Groups, Panel, QUARTERS, Sums, add_half};
use crate::kernels::activations::ActBlock;

/// Some bits of each byte: those of `mask` once the byte is shifted right by `shift`.
#[inline]
#[target_feature(enable = "neon")]
fn bits(bytes: &[uint8x16_t; 8], shift: usize, mask: u8) -> [uint8x16_t; 8] {
    let shift = vdupq_n_s8(-(shift as i8));
    bytes.map(|b| vandq_u8(vshlq_u8(b, shift), vdupq_n_u8(mask)))
}

/// Codes of four low bits and what is above them.
#[inline]
#[target_feature(enable = "neon")]
fn joined(low: [uint8x16_t; 8], high: [uint8x16_t; 8]) -> [uint8x16_t; 8] {
    std::array::from_fn(|i| vorrq_u8(low[i], vshlq_n_u8::<4>(high[i])))
}

/// dw * scale and dmin * min of run `part`, from the first 16 bytes of a Q4_K or Q5_K block.
///
/// # Safety
/// The block has 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn scales(place: impl Place, part: usize) -> (float32x4_t, float32x4_t) {
    // SAFETY: by the caller's promise.
    let (first, second, third) = unsafe { (place.four(4), place.four(8), place.four(12)) };
    let byte = |word: uint32x4_t, shift: usize, mask: u32| {
        let shifted = vshlq_u32(word, vdupq_n_s32(-(shift as i32)));
        vandq_u32(shifted, vdupq_n_u32(mask))
    };
    let (scale, min) = if part < 4 {
        let at = 8 * part;
        (byte(first, at, 63), byte(second, at, 63))
    } else {
        let at = 8 * (part - 4);
        (
            vorrq_u32(byte(third, at, 15), byte(first, at + 2, 48)),
            vorrq_u32(byte(third, at + 4, 15), byte(second, at + 2, 48)),
        )
    };
    // SAFETY: as above.
    let (dw, dmin) = unsafe { (place.f16(0), place.f16(2)) };
    (
        vmulq_f32(dw, vcvtq_f32_u32(scale)),
        vmulq_f32(dmin, vcvtq_f32_u32(min)),
    )
}

/// acc - min * (sumq * d) + scale * (isum * d), each sum fused.
#[inline]
#[target_feature(enable = "neon")]
fn add_run(
    acc: float32x4_t,
    isum: int32x4_t,
    (scale, min): (float32x4_t, float32x4_t),
    x: &ActBlock,
) -> float32x4_t {
    let acc = vfmsq_f32(acc, min, vdupq_n_f32(x.sum() as f32 * x.d));
    vfmaq_f32(acc, scale, vmulq_n_f32(vcvtq_f32_s32(isum), x.d))
}

/// Q4_K: nibbles; dw * scale and dmin * min.
pub(super) struct Q4K;

impl Format for Q4K {
    const BYTES: usize = 144;
    const PARTS: usize = 8;
    type Scale = (float32x4_t, float32x4_t);

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn decode(place: impl Place, part: usize) -> (Groups, Self::Scale) {
        // SAFETY: a block is 16 bytes, then 32 of nibbles to two parts.
        let (nibbles, scales) =
            unsafe { (bytes(place, 16 + 32 * (part / 2)), scales(place, part)) };
        (signed(bits(&nibbles, 4 * (part % 2), 15), 0), scales)
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add(
        acc: float32x4_t,
        isum: int32x4_t,
        scale: Self::Scale,
        x: &ActBlock,
    ) -> float32x4_t {
        add_run(acc, isum, scale, x)
    }
}

/// Q5_K: codes of five bits; dw * scale and dmin * min.
pub(super) struct Q5K;

impl Format for Q5K {
    const BYTES: usize = 176;
    const PARTS: usize = 8;
    type Scale = (float32x4_t, float32x4_t);

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn decode(place: impl Place, part: usize) -> (Groups, Self::Scale) {
        // SAFETY: a block is 16 bytes, 32 of fifth bits, then 32 of nibbles to two parts.
        let (nibbles, fifths, scales) = unsafe {
            let nibbles = bytes(place, 48 + 32 * (part / 2));
            (nibbles, bytes(place, 16), scales(place, part))
        };
        let low = bits(&nibbles, 4 * (part % 2), 15);
        (signed(joined(low, bits(&fifths, part, 1)), 0), scales)
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add(
        acc: float32x4_t,
        isum: int32x4_t,
        scale: Self::Scale,
        x: &ActBlock,
    ) -> float32x4_t {
        add_run(acc, isum, scale, x)
    }
}

/// Q6_K: codes of six bits less 32; both halves' scales, and dw.
pub(super) struct Q6K;

impl Format for Q6K {
    const BYTES: usize = 210;
    const PARTS: usize = 8;
    type Scale = ([int32x4_t; 2], float32x4_t);

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn decode(place: impl Place, part: usize) -> (Groups, Self::Scale) {
        let (half, quarter) = (part / 4, part % 4);
        // SAFETY: a block is 128 bytes of nibbles, 64 of pairs, 16 of scales and an f16.
        let (nibbles, pairs, scales, dw) = unsafe {
            (
                bytes(place, 64 * half + 32 * (quarter % 2)),
                bytes(place, 128 + 32 * half),
                place.four(192 + 4 * (part / 2)),
                place.f16(208),
            )
        };
        let low = bits(&nibbles, 4 * (quarter / 2), 15);
        let codes = signed(joined(low, bits(&pairs, 2 * quarter, 3)), 32);
        // A signed byte of each lane comes to the top, then down with its sign.
        let scales = [0, 1].map(|i| {
            let up = vdupq_n_s32(24 - 8 * (2 * (part % 2) as i32 + i));
            vshrq_n_s32::<24>(vshlq_s32(vreinterpretq_s32_u32(scales), up))
        });
        (codes, (scales, dw))
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn dots<const T: usize>(
        panel: &Panel,
        scales: &[Self::Scale; QUARTERS],
        x: &[ActBlock; T],
    ) -> [Sums; T] {
        let mut isums = [[vdupq_n_s32(0); QUARTERS]; T];
        for half in 0..2 {
            let mut sums = [[vdupq_n_s32(0); QUARTERS]; T];
            add_half(&mut sums, panel, x, half);
            for (isums, sums) in isums.iter_mut().zip(sums) {
                for ((isum, sum), (scales, _)) in isums.iter_mut().zip(sums).zip(scales) {
                    *isum = vmlaq_s32(*isum, sum, scales[half]);
                }
            }
        }
        isums
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add(
        acc: float32x4_t,
        isum: int32x4_t,
        (_, dw): Self::Scale,
        x: &ActBlock,
    ) -> float32x4_t {
        vfmaq_f32(acc, vcvtq_f32_s32(isum), vmulq_n_f32(dw, x.d))
    }
}
