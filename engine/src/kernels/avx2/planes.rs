//! Q8_0 tiles in planes (`formats::planes`): the weights are put together in registers, from both
//! parts or from the high part alone.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::ops::Range;

use super::formats::Q8_0;
use super::place::{Place, ROWS};
use super::tile::each_tile;
use crate::formats::planes::{GROUP, HIGH, LOW, SCALES};
use crate::formats::tiles::TILE_ROWS;
use crate::kernels::array::array;
use crate::kernels::planes::REBIAS;
use crate::kernels::{Activations, Layout, Matrix, Precision};

/// See [`crate::kernels::matmul`]. The caller holds an `Isa` of this level, of AVX-512's, or with
/// `VNNI` of AVX-VNNI's, and a Q8_0 matrix in planes.
pub(in crate::kernels) fn in_planes<const VNNI: bool>(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    let start = rows.start / TILE_ROWS * TILE_ROWS;
    let blocks = x.k / 32;
    // SAFETY: reached only through `Isa`s of these levels, which only detection of AVX2, FMA and F16C,
    // and with `VNNI` AVX-VNNI, makes; `matmul` has checked the shapes, so a tile has
    // `blocks` block columns, each in a high and a low part.
    unsafe {
        if w.layout == Layout::HighPlanes {
            let place = |first, half| Planes::<false>::new(w.tile(first / TILE_ROWS), blocks, half);
            each_tile::<Q8_0, _, VNNI>(start, place, rows.clone(), x, tokens, precision, out);
        } else {
            let place = |first, half| Planes::<true>::new(w.tile(first / TILE_ROWS), blocks, half);
            each_tile::<Q8_0, _, VNNI>(start, place, rows.clone(), x, tokens, precision, out);
        }
    }
}

/// Each row's sum of |d| c over the blocks of a tile in planes. The caller holds an `Isa` of this
/// level or a higher one.
pub(in crate::kernels) fn room(planes: &[u8], c: &[f32]) -> [f32; TILE_ROWS] {
    assert!(
        c.len() * (HIGH + LOW) <= planes.len(),
        "a block column for each"
    );
    // SAFETY: reached only through `Isa`s that have AVX2; there are as many block columns.
    unsafe { add_up(planes.as_ptr(), c) }
}

/// # Safety
/// The machine has AVX2; `high` has a high part for each of `c`.
#[target_feature(enable = "avx2")]
unsafe fn add_up(high: *const u8, c: &[f32]) -> [f32; TILE_ROWS] {
    let (magnitude, rebias) = (_mm256_set1_epi32(0x7fff), _mm256_set1_ps(REBIAS));
    let mut sums = [_mm256_setzero_ps(); 2];
    for (b, c) in c.iter().enumerate() {
        let c = _mm256_set1_ps(*c);
        for (h, sum) in sums.iter_mut().enumerate() {
            // SAFETY: a high part begins with 16 scales of two bytes.
            let d = unsafe { _mm_loadu_si128(high.add(b * HIGH + 2 * h * ROWS).cast()) };
            let d = _mm256_and_si256(_mm256_cvtepu16_epi32(d), magnitude);
            let d = _mm256_castsi256_ps(_mm256_slli_epi32::<13>(d));
            let d = _mm256_mul_ps(d, rebias);
            *sum = _mm256_add_ps(*sum, _mm256_mul_ps(d, c));
        }
    }
    let mut out = [0f32; TILE_ROWS];
    for (sum, out) in sums.into_iter().zip(out.as_chunks_mut::<ROWS>().0) {
        // SAFETY: eight floats.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), sum) };
    }
    out
}

/// A block column; without `LOWEST` the weights' two lowest bits are 0.
#[derive(Clone, Copy)]
struct Planes<const LOWEST: bool> {
    high: *const u8,
    low: *const u8,
    /// The first of the tile's rows, 0 or 8.
    first: usize,
    /// Where the tile's high part ends.
    end: *const u8,
    /// From there to the next tile.
    gap: usize,
}

impl<const LOWEST: bool> Planes<LOWEST> {
    fn new(tile: &[u8], blocks: usize, half: usize) -> Self {
        Self {
            high: tile.as_ptr(),
            low: tile[blocks * HIGH..].as_ptr(),
            first: half * ROWS,
            end: tile[blocks * HIGH..].as_ptr(),
            gap: blocks * LOW,
        }
    }

    /// Eight rows' part of group `g` at `from`.
    ///
    /// # Safety
    /// There are 64 bytes of that group.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn group(self, from: *const u8, g: usize) -> __m256i {
        // SAFETY: by the caller's promise; a row's part of a group is four bytes.
        unsafe { _mm256_loadu_si256(from.add(g * GROUP + 4 * self.first).cast()) }
    }
}

impl<const LOWEST: bool> Place for Planes<LOWEST> {
    #[inline]
    unsafe fn forward(self, blocks: usize, bytes: usize) -> Self {
        debug_assert_eq!(TILE_ROWS * bytes, HIGH + LOW);
        // SAFETY: by the caller's promise.
        unsafe {
            Self {
                high: self.high.add(blocks * HIGH),
                low: self.low.add(blocks * LOW),
                ..self
            }
        }
    }

    /// Weights 0 to 15 lie at byte 2 of a Q8_0 block, 16 to 31 at byte 18.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn sixteen(self, at: usize) -> [__m256i; 4] {
        let second = usize::from(at != 2);
        let (upper_bits, two, middle_bits) = (
            _mm256_set1_epi8(0xf0u8 as i8),
            _mm256_set1_epi8(3),
            _mm256_set1_epi8(12),
        );
        // SAFETY: the high part of a block column has its scales and 6 groups, the low part 2.
        let (groups, middle, low) = unsafe {
            let groups = self.high.add(SCALES);
            let low = if LOWEST {
                self.group(self.low, second)
            } else {
                _mm256_setzero_si256()
            };
            (groups, self.group(groups, 4 + second), low)
        };
        // Bits 2s and 2s + 1 of `middle` and `low` are weight group s's.
        let middle = [
            _mm256_slli_epi16::<2>(middle),
            middle,
            _mm256_srli_epi16::<2>(middle),
            _mm256_srli_epi16::<4>(middle),
        ];
        let low = [
            low,
            _mm256_srli_epi16::<2>(low),
            _mm256_srli_epi16::<4>(low),
            _mm256_srli_epi16::<6>(low),
        ];
        array(|g| {
            // SAFETY: as above.
            let upper = unsafe { self.group(groups, g) };
            let upper = if second == 0 {
                _mm256_slli_epi16::<4>(upper)
            } else {
                upper
            };
            let upper = _mm256_and_si256(upper, upper_bits);
            let w = _mm256_or_si256(upper, _mm256_and_si256(middle[g], middle_bits));
            if LOWEST {
                _mm256_or_si256(w, _mm256_and_si256(low[g], two))
            } else {
                w
            }
        })
    }

    unsafe fn four(self, _at: usize) -> __m256i {
        unreachable!("Q8_0 has no such field")
    }

    unsafe fn byte(self, _at: usize) -> __m256i {
        unreachable!("Q8_0 has no such field")
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn f16(self, _at: usize) -> __m256 {
        // SAFETY: the scales of 16 rows begin a block column's high part.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(self.high.add(2 * self.first).cast())) }
    }

    /// The first half asks for both. Where the high part alone is read, the next one follows.
    #[inline]
    fn prefetch(self, _bytes: Range<usize>) {
        /// As for whole tiles.
        const AHEAD: usize = 3072;
        if self.first != 0 {
            return;
        }
        let ask = |from: *const u8, bytes: usize| {
            for line in (0..bytes).step_by(64) {
                // SAFETY: prefetching has no effect but on caches, at any address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(line).cast()) };
            }
        };
        let next = self.high.wrapping_add(AHEAD);
        if LOWEST {
            ask(next, HIGH);
            ask(self.low.wrapping_add(AHEAD), LOW);
        } else if next < self.end {
            ask(next, HIGH);
        } else {
            ask(next.wrapping_add(self.gap), HIGH);
        }
    }
}
