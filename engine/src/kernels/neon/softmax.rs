//! Softmax with a row's block of scores in sixteen registers.

use std::arch::aarch64::{
    float32x4_t, vaddq_f32, vaddq_s32, vbslq_f32, vcgtq_f32, vcltq_f32, vdupq_n_f32, vdupq_n_s32,
    vextq_f32, vgetq_lane_f32, vld1q_f32, vmulq_f32, vreinterpretq_f32_s32, vreinterpretq_s32_f32,
    vshlq_n_s32, vst1q_f32, vsubq_f32,
};

use crate::kernels::elementary::{ENDS, LN2_HIGH, LN2_LOW, ROUNDER, TAYLOR};
use crate::kernels::softmax::{KEY_BLOCK, Tally};

/// Registers of a block.
const QUADS: usize = KEY_BLOCK / 4;

/// See [`crate::kernels::soften`]. The caller holds an `Isa` of this level.
pub(in crate::kernels) fn soften(scores: &mut [[f32; KEY_BLOCK]], tallies: &mut [Tally]) {
    for (scores, tally) in scores.iter_mut().zip(tallies) {
        if tally.begin(scores) {
            // SAFETY: reached only through `Isa(Level::Neon)`, which only detection makes.
            unsafe { row(scores, tally) }
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn row(scores: &mut [f32; KEY_BLOCK], tally: &mut Tally) {
    let at = scores.as_mut_ptr();
    // Register i holds the scores from 4 i on: lanes 4 (i mod 4) to 4 (i mod 4) + 3 of the 16.
    // SAFETY: four times sixteen scores.
    let s: [float32x4_t; QUADS] = std::array::from_fn(|i| unsafe { vld1q_f32(at.add(4 * i)) });
    let mut lanes = [vdupq_n_f32(f32::NEG_INFINITY); 4];
    for (i, s) in s.into_iter().enumerate() {
        lanes[i % 4] = larger(lanes[i % 4], s);
    }
    tally.rise(tree(lanes, larger));

    let max = vdupq_n_f32(tally.max);
    let mut sums = [vdupq_n_f32(0.0); 4];
    for (i, s) in s.into_iter().enumerate() {
        let weight = exp(vsubq_f32(s, max));
        sums[i % 4] = add(sums[i % 4], weight);
        // SAFETY: as above.
        unsafe { vst1q_f32(at.add(4 * i), weight) };
    }
    tally.count(tree(sums, add));
}

/// `b` where it is larger; NaN never is.
#[inline]
fn larger(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    // SAFETY: every target for 64-bit Arm that has floats has NEON.
    unsafe { vbslq_f32(vcgtq_f32(b, a), b, a) }
}

#[inline]
fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    // SAFETY: as above.
    unsafe { vaddq_f32(a, b) }
}

/// Lane 0 with 8, 1 with 9, ...; then 0 with 4, and so on.
#[inline]
fn tree(
    [a, b, c, d]: [float32x4_t; 4],
    join: impl Fn(float32x4_t, float32x4_t) -> float32x4_t,
) -> f32 {
    let lanes = join(join(a, c), join(b, d));
    // SAFETY: every target for 64-bit Arm that has floats has NEON.
    unsafe {
        let lanes = join(lanes, vextq_f32::<2>(lanes, lanes));
        vgetq_lane_f32::<0>(join(lanes, vextq_f32::<1>(lanes, lanes)))
    }
}

/// [`crate::kernels::exp`] in each lane, for numbers that are not above 0: nothing overflows, and
/// 2^n needs but one step. NaN stays NaN by itself.
#[inline]
#[target_feature(enable = "neon")]
fn exp(x: float32x4_t) -> float32x4_t {
    let set = |x: f32| vdupq_n_f32(x);
    let least = set(ENDS[0]);
    let is_less = vcltq_f32(x, least);
    let clamped = vbslq_f32(is_less, least, x);
    let rounded = vaddq_f32(
        vmulq_f32(clamped, set(std::f32::consts::LOG2_E)),
        set(ROUNDER),
    );
    let n = vsubq_f32(rounded, set(ROUNDER));
    let r = vsubq_f32(clamped, vmulq_f32(n, set(LN2_HIGH)));
    let r = vsubq_f32(r, vmulq_f32(n, set(LN2_LOW)));
    let mut p = set(TAYLOR[0]);
    for coefficient in &TAYLOR[1..] {
        p = vaddq_f32(vmulq_f32(p, r), set(*coefficient));
    }
    let e = vmulq_f32(vmulq_f32(p, r), r);
    let e = vaddq_f32(vaddq_f32(e, r), set(1.0));
    // The bits of `rounded` less those of the rounder are n; shifted up, all but n + 127 is lost.
    let bias = vdupq_n_s32(127 - ROUNDER.to_bits() as i32);
    let power = vshlq_n_s32::<23>(vaddq_s32(vreinterpretq_s32_f32(rounded), bias));
    let y = vmulq_f32(e, vreinterpretq_f32_s32(power));
    vbslq_f32(is_less, set(0.0), y)
}
