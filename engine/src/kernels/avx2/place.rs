//! Where the blocks of eight rows lie: in the rows of a file, or in a tile.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::ops::Range;

use crate::formats::packed_scales::{DISTANCES, LEAST, WEIGHTS, weights_at};
use crate::formats::tiles::TILE_ROWS;
use crate::kernels::array::array;

/// Rows in the lanes of a register.
pub(super) const ROWS: usize = 8;

/// One block of each of eight rows. Offsets are those of a field inside a block; lane r is row r.
pub(super) trait Place: Copy {
    /// This place, `blocks` blocks of `bytes` further along the rows.
    ///
    /// # Safety
    /// The rows have that many more blocks.
    unsafe fn forward(self, blocks: usize, bytes: usize) -> Self;

    /// 16 bytes of each row: register g has bytes 4g to 4g + 3.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C; the block has 16 bytes at `at`.
    unsafe fn sixteen(self, at: usize) -> [__m256i; 4];

    /// Four bytes of each row.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C; the block has four bytes at `at`, which
    /// are a field of a tile.
    unsafe fn four(self, at: usize) -> __m256i;

    /// One byte of each row, widened to 32 bits.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C; the block has a byte at `at`.
    unsafe fn byte(self, at: usize) -> __m256i;

    /// One f16 of each row, widened.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C; the block has two bytes at `at`.
    unsafe fn f16(self, at: usize) -> __m256;

    /// Asks for what this place will read a while later of some bytes of a block.
    fn prefetch(self, bytes: Range<usize>);
}

/// Rows as they lie in a file.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// The block of each row.
    pub(super) at: [*const u8; ROWS],
    /// Bytes of a row: the next tile's rows lie 16 times that further.
    pub(super) row_bytes: usize,
}

impl Place for Rows {
    #[inline]
    unsafe fn forward(self, blocks: usize, bytes: usize) -> Self {
        Self {
            // SAFETY: by the caller's promise.
            at: self.at.map(|row| unsafe { row.add(blocks * bytes) }),
            row_bytes: self.row_bytes,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn sixteen(self, offset: usize) -> [__m256i; 4] {
        let rows = self.at;
        // SAFETY: by the caller's promise.
        let pair = |r: usize| unsafe {
            let low = _mm_loadu_si128(rows[r].add(offset).cast());
            let high = _mm_loadu_si128(rows[r + 4].add(offset).cast());
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
        };
        let (m0, m1, m2, m3) = (pair(0), pair(1), pair(2), pair(3));
        let a = _mm256_unpacklo_epi32(m0, m1);
        let b = _mm256_unpacklo_epi32(m2, m3);
        let c = _mm256_unpackhi_epi32(m0, m1);
        let d = _mm256_unpackhi_epi32(m2, m3);
        [
            _mm256_unpacklo_epi64(a, b),
            _mm256_unpackhi_epi64(a, b),
            _mm256_unpacklo_epi64(c, d),
            _mm256_unpackhi_epi64(c, d),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn four(self, at: usize) -> __m256i {
        // SAFETY: by the caller's promise; the read is unaligned.
        let words = self
            .at
            .map(|row| unsafe { row.add(at).cast::<i32>().read_unaligned() });
        // SAFETY: `words` is 32 bytes.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn byte(self, at: usize) -> __m256i {
        // SAFETY: by the caller's promise.
        let e = self.at.map(|row| unsafe { *row.add(at) });
        // SAFETY: `e` is 8 bytes.
        _mm256_cvtepu8_epi32(unsafe { _mm_loadl_epi64(e.as_ptr().cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn f16(self, offset: usize) -> __m256 {
        let rows = self.at;
        // SAFETY: by the caller's promise; the read is unaligned.
        let h = rows.map(|row| unsafe { row.add(offset).cast::<i16>().read_unaligned() });
        _mm256_cvtph_ps(_mm_setr_epi16(
            h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7],
        ))
    }

    /// The same block of the next tile's rows.
    #[inline]
    fn prefetch(self, bytes: Range<usize>) {
        for row in self.at {
            let next = row.wrapping_add(TILE_ROWS * self.row_bytes + bytes.start);
            // SAFETY: prefetching has no effect but on caches, at any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(next.cast()) };
        }
    }
}

/// Rows of a tile: a field at byte `at` of a block lies at `16 * at` of the block column.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// The block column.
    pub(super) column: *const u8,
    /// The first of the tile's rows, 0 or 8.
    pub(super) first: usize,
}

impl Place for Tile {
    #[inline]
    unsafe fn forward(self, blocks: usize, bytes: usize) -> Self {
        Self {
            // SAFETY: by the caller's promise.
            column: unsafe { self.column.add(blocks * bytes * TILE_ROWS) },
            first: self.first,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn sixteen(self, at: usize) -> [__m256i; 4] {
        // SAFETY: four fields of four bytes for 16 rows, by the caller's promise.
        array(|g| unsafe {
            let field = self.column.add((at + 4 * g) * TILE_ROWS + 4 * self.first);
            _mm256_loadu_si256(field.cast())
        })
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn four(self, at: usize) -> __m256i {
        // SAFETY: a field of four bytes for 16 rows, by the caller's promise.
        unsafe {
            let field = self.column.add(at * TILE_ROWS + 4 * self.first);
            _mm256_loadu_si256(field.cast())
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn byte(self, at: usize) -> __m256i {
        // SAFETY: a field of one byte for 16 rows, by the caller's promise.
        unsafe {
            let field = self.column.add(at * TILE_ROWS + self.first);
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(field.cast()))
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn f16(self, at: usize) -> __m256 {
        // SAFETY: a field of two bytes for 16 rows, by the caller's promise.
        unsafe {
            let field = self.column.add(at * TILE_ROWS + 2 * self.first);
            _mm256_cvtph_ps(_mm_loadu_si128(field.cast()))
        }
    }

    /// The first half asks for both.
    #[inline]
    fn prefetch(self, bytes: Range<usize>) {
        if self.first == 0 {
            ahead(self.column, TILE_ROWS * bytes.start..TILE_ROWS * bytes.end);
        }
    }
}

/// Asks for what lies a while behind some bytes after `at`.
#[inline]
fn ahead(at: *const u8, bytes: Range<usize>) {
    /// Far enough for memory to answer, near enough to stay in L1.
    const AHEAD: usize = 3072;
    for line in bytes.step_by(64) {
        // SAFETY: prefetching has no effect but on caches, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(AHEAD + line).cast()) };
    }
}

/// Rows of an MXFP4 tile with packed scales (`formats::packed_scales`).
#[derive(Clone, Copy)]
pub(super) struct Packed {
    /// The distances of the block column.
    distances: *const u8,
    /// The weights of the first of the rows.
    weights: *const u8,
    /// The rows' least scales.
    least: __m256i,
    /// The first of the tile's rows, 0 or 8.
    first: usize,
}

impl Packed {
    /// Eight rows of a tile of so many block columns from row `first`, 0 or 8, on.
    ///
    /// # Safety
    /// The machine has AVX2; `tile` is a whole one.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn new(tile: *const u8, columns: usize, first: usize) -> Self {
        // SAFETY: by the caller's promise.
        unsafe {
            Self {
                distances: tile.add(LEAST),
                weights: tile.add(weights_at(columns) + 4 * first),
                least: _mm256_cvtepu8_epi32(_mm_loadl_epi64(tile.add(first).cast())),
                first,
            }
        }
    }
}

impl Place for Packed {
    #[inline]
    unsafe fn forward(self, blocks: usize, _bytes: usize) -> Self {
        Self {
            // SAFETY: by the caller's promise.
            distances: unsafe { self.distances.add(blocks * DISTANCES) },
            // SAFETY: by the caller's promise.
            weights: unsafe { self.weights.add(blocks * WEIGHTS) },
            ..self
        }
    }

    /// The weights, which are at byte 1 of a block.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn sixteen(self, at: usize) -> [__m256i; 4] {
        debug_assert_eq!(at, 1, "MXFP4");
        // SAFETY: four fields of four bytes for 16 rows.
        array(|g| unsafe { _mm256_loadu_si256(self.weights.add(4 * g * TILE_ROWS).cast()) })
    }

    unsafe fn four(self, _at: usize) -> __m256i {
        unreachable!("MXFP4 has no such field")
    }

    /// The scale, which is at byte 0 of a block.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn byte(self, at: usize) -> __m256i {
        debug_assert_eq!(at, 0, "MXFP4");
        // SAFETY: eight bytes of distances.
        let bytes = unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(self.distances.cast())) };
        let half = if self.first == 0 {
            bytes
        } else {
            _mm256_srli_epi32::<4>(bytes)
        };
        _mm256_add_epi32(self.least, _mm256_and_si256(half, _mm256_set1_epi32(15)))
    }

    unsafe fn f16(self, _at: usize) -> __m256 {
        unreachable!("MXFP4 has no f16")
    }

    /// The first half asks for both; distances are few and lie in a row.
    #[inline]
    fn prefetch(self, _bytes: Range<usize>) {
        if self.first == 0 {
            ahead(self.weights, 0..WEIGHTS);
        }
    }
}
