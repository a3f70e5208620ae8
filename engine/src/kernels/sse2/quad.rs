//! Four f32 in a register.

use std::arch::x86_64::{__m128, _mm_add_ps, _mm_loadu_ps, _mm_mul_ps, _mm_set1_ps, _mm_storeu_ps};

/// Four f32. Every operation rounds each lane on its own, as the scalar one does.
#[derive(Clone, Copy)]
pub(in super::super) struct Quad(__m128);

impl Quad {
    /// `x` four times.
    #[inline]
    pub fn splat(x: f32) -> Self {
        // SAFETY: SSE2 is part of x86-64.
        Self(unsafe { _mm_set1_ps(x) })
    }
    /// The four of an array.
    #[inline]
    pub fn load(x: &[f32; 4]) -> Self {
        // SAFETY: SSE2 is part of x86-64; the array holds the 16 bytes that are read.
        Self(unsafe { _mm_loadu_ps(x.as_ptr()) })
    }
    /// Sum.
    #[inline]
    pub fn add(self, other: Self) -> Self {
        // SAFETY: SSE2 is part of x86-64.
        Self(unsafe { _mm_add_ps(self.0, other.0) })
    }
    /// Product.
    #[inline]
    pub fn mul(self, other: Self) -> Self {
        // SAFETY: SSE2 is part of x86-64.
        Self(unsafe { _mm_mul_ps(self.0, other.0) })
    }
    /// As an array.
    #[inline]
    pub fn array(self) -> [f32; 4] {
        let mut out = [0.0; 4];
        // SAFETY: SSE2 is part of x86-64; the array holds the 16 bytes that are written.
        unsafe { _mm_storeu_ps(out.as_mut_ptr(), self.0) };
        out
    }
}
