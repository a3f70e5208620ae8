//! Four f32 in a register.

use std::arch::aarch64::{float32x4_t, vaddq_f32, vdupq_n_f32, vld1q_f32, vmulq_f32, vst1q_f32};

/// Four f32. Every operation rounds each lane on its own, as the scalar one does.
#[derive(Clone, Copy)]
pub(in super::super) struct Quad(float32x4_t);

impl Quad {
    /// `x` four times.
    #[inline]
    pub fn splat(x: f32) -> Self {
        // SAFETY: every target for 64-bit Arm that has floats has NEON.
        Self(unsafe { vdupq_n_f32(x) })
    }
    /// The four of an array.
    #[inline]
    pub fn load(x: &[f32; 4]) -> Self {
        // SAFETY: as above; the array holds the 16 bytes that are read.
        Self(unsafe { vld1q_f32(x.as_ptr()) })
    }
    /// Sum.
    #[inline]
    pub fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { vaddq_f32(self.0, other.0) })
    }
    /// Product.
    #[inline]
    pub fn mul(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { vmulq_f32(self.0, other.0) })
    }
    /// As an array.
    #[inline]
    pub fn array(self) -> [f32; 4] {
        let mut out = [0.0; 4];
        // SAFETY: as above; the array holds the 16 bytes that are written.
        unsafe { vst1q_f32(out.as_mut_ptr(), self.0) };
        out
    }
}
