//! Instructions that stable Rust has no names for.

use std::arch::aarch64::{float32x4_t, int8x16_t, int32x4_t, uint16x4_t};
use std::arch::asm;

/// Adds to each 32-bit lane of `sum` the four products of its signed bytes of `w` with bytes
/// 4 LANE to 4 LANE + 3 of `q`.
#[inline]
#[target_feature(enable = "neon,dotprod")]
pub(super) fn dot<const LANE: u8>(mut sum: int32x4_t, w: int8x16_t, q: int8x16_t) -> int32x4_t {
    const { assert!(LANE < 4, "four lanes") };
    // SAFETY: registers to a register; the machine has the instruction, as this function says.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {w:v}.16b, {q:v}.4b[{lane}]",
            sum = inout(vreg) sum,
            w = in(vreg) w,
            q = in(vreg) q,
            lane = const LANE,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// Four f16, widened; subnormal ones as well.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn widen(h: uint16x4_t) -> float32x4_t {
    let wide;
    // SAFETY: a register to a register, on every machine with NEON.
    unsafe {
        asm!(
            "fcvtl {wide:v}.4s, {h:v}.4h",
            wide = lateout(vreg) wide,
            h = in(vreg) h,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    wide
}

/// Asks for the cache line of `at`, which may be any address.
#[inline]
pub(super) fn prefetch(at: *const u8) {
    // SAFETY: prefetching has no effect but on caches, at any address.
    unsafe {
        asm!(
            "prfm pldl1keep, [{at}]",
            at = in(reg) at,
            options(readonly, nostack, preserves_flags),
        );
    }
}
