//! Q8_0's products with several tokens, in 16 bits and with half the multiplications.
//!
//! Products of signed bytes do not add up in an i16, so that in bytes each takes four instructions
//! for 32 of them, three of which compete for the same two ports. After Winograd ("A new algorithm
//! for inner product", 1968)
//!
//! ```text
//! (w0 + q1) (w1 + q0) = w0 q0 + w1 q1 + w0 w1 + q0 q1
//! ```
//!
//! is two products by one multiplication; the sums of w0 w1 of a row's block and of q0 q1 of a
//! token's block are computed once and taken off. That is four instructions for 32 products as
//! well, but three of them are additions, which every port does.
//!
//! All of it is exact: |w| <= 128 and |q| <= 127, so a factor is within ±255, a product below 2^16
//! and the sum of a block's 16 below 2^20 in magnitude. So the sum is that of the scalar twin.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;

use super::formats::in_lanes;
use super::place::{Place, ROWS};
use super::tile::{Decoded, Format, HALVES, Sums, add_tokens, part};
use crate::formats::tiles::TILE_ROWS;
use crate::kernels::activations::{ActBlock, Run};
use crate::kernels::array::array;

/// Fewer tokens than this are not worth what is to be computed of the weights beforehand.
pub(super) const LEAST: usize = 8;
/// Tokens that meet four registers of weights: their sums fill eight of the sixteen registers.
const TOGETHER: usize = 4;

/// Fours of a block.
const GROUPS: usize = 8;

/// A digit of a block of activations.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Wide {
    /// Values 4g and 4g + 2.
    even: [[i16; 2]; GROUPS],
    /// Values 4g + 1 and 4g + 3.
    odd: [[i16; 2]; GROUPS],
    d: f32,
    /// Less the sum of values 2i times values 2i + 1.
    correction: i32,
}

impl Wide {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(x: &ActBlock) -> Self {
        let (mut even, mut odd) = ([[0; 2]; GROUPS], [[0; 2]; GROUPS]);
        let mut lanes = [0; GROUPS];
        // SAFETY: arrays of 32 bytes each.
        unsafe {
            let [e, o] = widen(_mm256_loadu_si256(x.q.as_ptr().cast()));
            _mm256_storeu_si256(even.as_mut_ptr().cast(), e);
            _mm256_storeu_si256(odd.as_mut_ptr().cast(), o);
            _mm256_storeu_si256(lanes.as_mut_ptr().cast(), _mm256_madd_epi16(e, o));
        }
        Self {
            even,
            odd,
            d: x.d,
            correction: -lanes.iter().sum::<i32>(),
        }
    }
}

/// The activations of a run's tokens, in the order of its blocks.
#[target_feature(enable = "avx2")]
pub(super) fn widened(run: &Run<'_>, digits: usize, blocks: usize) -> Vec<Wide> {
    let mut wide = Vec::with_capacity(digits * blocks * run.tokens.len());
    for digit in 0..digits {
        for b in 0..blocks {
            for x in run.blocks(digit, b) {
                wide.push(Wide::new(x));
            }
        }
    }
    wide
}

/// Bytes 0 and 2 of each 32-bit lane, and bytes 1 and 3, widened.
#[inline]
#[target_feature(enable = "avx2")]
fn widen(bytes: __m256i) -> [__m256i; 2] {
    [
        _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(bytes)),
        _mm256_srai_epi16::<8>(bytes),
    ]
}

/// As `tile::some_tokens`, for `tokens` tokens with the activations `x` of [`widened`].
///
/// # Safety
/// The rows at each place have `blocks` blocks.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn some_tokens<F: Format, P: Place>(
    places: [P; HALVES],
    digits: usize,
    blocks: usize,
    tokens: usize,
    x: &[Wide],
    sums: &mut Sums,
) {
    for b in 0..blocks {
        // SAFETY: this function's features are the format's; the rows have block b.
        unsafe {
            let [low, high] = places;
            let (low, low_scale) = part::<F, P>(low, b);
            let (high, high_scale) = part::<F, P>(high, b);
            let panel: [[[__m256i; 2]; HALVES]; GROUPS] =
                array(|g| [widen(low[g]), widen(high[g])]);
            let mut excess = [_mm256_setzero_si256(); HALVES];
            for halves in &panel {
                for (excess, [even, odd]) in excess.iter_mut().zip(halves) {
                    *excess = _mm256_add_epi32(*excess, _mm256_madd_epi16(*even, *odd));
                }
            }
            let block = Words::<F> {
                panel,
                excess,
                scales: [low_scale, high_scale],
            };
            for digit in 0..digits {
                let x = &x[(digit * blocks + b) * tokens..][..tokens];
                add_tokens::<_, TOGETHER>(&block, x, sums);
            }
        }
    }
}

/// 32 weights of each of sixteen rows.
struct Words<F: Format> {
    /// Of each half, weights 4g and 4g + 2, then 4g + 1 and 4g + 3.
    panel: [[[__m256i; 2]; HALVES]; GROUPS],
    /// What is to be taken off: the sum of weights 2i times weights 2i + 1.
    excess: [__m256i; HALVES],
    scales: [F::Scale; HALVES],
}

impl<F: Format> Decoded for Words<F> {
    type X = Wide;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const T: usize>(&self, x: &[Wide; T], sums: &mut [[f32; TILE_ROWS]; T]) {
        let mut isums: [[__m256i; HALVES]; T] = array(|t| {
            let correction = _mm256_set1_epi32(x[t].correction);
            array(|h| _mm256_sub_epi32(correction, self.excess[h]))
        });
        for (g, halves) in self.panel.iter().enumerate() {
            for (isums, x) in isums.iter_mut().zip(x) {
                let (q_even, q_odd) = (in_lanes(x.even[g]), in_lanes(x.odd[g]));
                for (isum, [even, odd]) in isums.iter_mut().zip(halves) {
                    let (a, b) = (
                        _mm256_add_epi16(*even, q_odd),
                        _mm256_add_epi16(*odd, q_even),
                    );
                    *isum = _mm256_add_epi32(*isum, _mm256_madd_epi16(a, b));
                }
            }
        }
        // Indices: iterators over registers by value go through memory.
        for t in 0..T {
            for (h, isum) in isums[t].iter().enumerate() {
                // SAFETY: by the caller's promise; each half of `sums` is eight floats.
                unsafe {
                    let at = sums[t].as_mut_ptr().add(h * ROWS);
                    let acc = _mm256_loadu_ps(at);
                    let acc = F::add_scaled(acc, *isum, self.scales[h], x[t].d);
                    _mm256_storeu_ps(at, acc);
                }
            }
        }
    }
}
