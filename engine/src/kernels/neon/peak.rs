//! NEON at its best; see [`crate::kernels::peak`]. All loops keep several sums under way so that
//! no instruction waits for the one before, and each round depends on the last.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::aarch64::*;
use std::hint::black_box;

use super::instructions::dot;
use crate::kernels::peak::portable;

/// Sums under way.
const SUMS: usize = 16;

/// 16 products a sum, each a multiplication and an addition.
pub(in crate::kernels) const INT8_OPERATIONS: u64 = (SUMS * 16 * 2) as u64;
/// Four lanes a sum.
pub(in crate::kernels) const F32_OPERATIONS: u64 = (SUMS * 4 * 2) as u64;

/// Bytes of a step of [`read_all`].
const STEP: usize = 128;

/// The caller holds an `Isa` of this level, as for all that follow.
pub(in crate::kernels) fn int8(rounds: u64) {
    // SAFETY: reached only through `Isa(Level::Neon)`, which only detection makes.
    unsafe { int8_neon(rounds) }
}

pub(in crate::kernels) fn f32_mul_add(rounds: u64) {
    // SAFETY: as above.
    unsafe { f32_neon::<false>(rounds) }
}

pub(in crate::kernels) fn f32_fma(rounds: u64) {
    // SAFETY: as above.
    unsafe { f32_neon::<true>(rounds) }
}

pub(in crate::kernels) fn read_all(bytes: &[u8]) -> u64 {
    // SAFETY: as above.
    unsafe { read_all_neon(bytes) }
}

#[target_feature(enable = "neon,dotprod")]
fn int8_neon(rounds: u64) {
    let (w, q) = black_box((vdupq_n_s8(3), vdupq_n_s8(5)));
    let mut sums = black_box([vdupq_n_s32(1); SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = dot::<0>(*sum, w, q);
        }
    }
    black_box(sums);
}

#[target_feature(enable = "neon")]
fn f32_neon<const FUSED: bool>(rounds: u64) {
    let (c, d) = black_box((vdupq_n_f32(0.5), vdupq_n_f32(1.0)));
    let mut sums = black_box([d; SUMS]);
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = if FUSED {
                vfmaq_f32(d, *sum, c)
            } else {
                vaddq_f32(vmulq_f32(*sum, c), d)
            };
        }
    }
    black_box(sums);
}

#[target_feature(enable = "neon")]
fn read_all_neon(bytes: &[u8]) -> u64 {
    let (steps, tail) = bytes.as_chunks::<STEP>();
    let mut sums = [vdupq_n_u8(0); STEP / 16];
    for step in steps {
        for (sum, part) in sums.iter_mut().zip(step.as_chunks::<16>().0) {
            // SAFETY: a part has 16 bytes.
            *sum = veorq_u8(*sum, unsafe { vld1q_u8(part.as_ptr()) });
        }
    }
    let mut words = [0u8; STEP];
    for (sum, part) in sums.iter().zip(words.as_chunks_mut::<16>().0) {
        // SAFETY: a part has 16 bytes.
        unsafe { vst1q_u8(part.as_mut_ptr(), *sum) };
    }
    portable::read_all(&words) ^ portable::read_all(tail)
}
