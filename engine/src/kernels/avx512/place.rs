//! Where the blocks of sixteen rows lie: in the rows of a file, or in a tile.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::ops::Range;

use crate::formats::packed_scales::{DISTANCES, LEAST, WEIGHTS, weights_at};
use crate::formats::tiles::TILE_ROWS;

/// Rows in the lanes of a register.
pub(super) const ROWS: usize = 16;

/// One block of each of sixteen rows. Offsets are those of a field inside a block; lane r is row r.
pub(super) trait Place: Copy {
    /// This place, `blocks` blocks of `bytes` further along the rows.
    ///
    /// # Safety
    /// The rows have that many more blocks.
    unsafe fn forward(self, blocks: usize, bytes: usize) -> Self;

    /// 16 bytes of each row: register g has bytes 4g to 4g + 3.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW and VNNI; the block has 16 bytes at `at`.
    unsafe fn sixteen(self, at: usize) -> [__m512i; 4];

    /// Four bytes of each row.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW and VNNI; the block has four bytes at `at`, which
    /// are a field of a tile.
    unsafe fn four(self, at: usize) -> __m512i;

    /// One byte of each row, widened to 32 bits.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW and VNNI; the block has a byte at `at`.
    unsafe fn byte(self, at: usize) -> __m512i;

    /// One f16 of each row, widened.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW and VNNI; the block has two bytes at `at`.
    unsafe fn f16(self, at: usize) -> __m512;

    /// Asks for what this place will read a while later of some bytes of a block.
    fn prefetch(self, bytes: Range<usize>);
}

/// Rows as they lie in a file.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// The block of each row.
    pub(super) at: [*const u8; ROWS],
    /// Bytes of a row: the next sixteen rows lie `ROWS` times that further.
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
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn sixteen(self, offset: usize) -> [__m512i; 4] {
        let rows = self.at;
        // SAFETY: by the caller's promise.
        let load = |r: usize| unsafe { _mm_loadu_si128(rows[r].add(offset).cast()) };
        let four_rows = |r: usize| {
            let x = _mm512_castsi128_si512(load(r));
            let x = _mm512_inserti32x4::<1>(x, load(r + 4));
            let x = _mm512_inserti32x4::<2>(x, load(r + 8));
            _mm512_inserti32x4::<3>(x, load(r + 12))
        };
        let (m0, m1, m2, m3) = (four_rows(0), four_rows(1), four_rows(2), four_rows(3));
        let a = _mm512_unpacklo_epi32(m0, m1);
        let b = _mm512_unpacklo_epi32(m2, m3);
        let c = _mm512_unpackhi_epi32(m0, m1);
        let d = _mm512_unpackhi_epi32(m2, m3);
        [
            _mm512_unpacklo_epi64(a, b),
            _mm512_unpackhi_epi64(a, b),
            _mm512_unpacklo_epi64(c, d),
            _mm512_unpackhi_epi64(c, d),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn four(self, at: usize) -> __m512i {
        // SAFETY: by the caller's promise; the read is unaligned.
        let words = self
            .at
            .map(|row| unsafe { row.add(at).cast::<i32>().read_unaligned() });
        // SAFETY: `words` is 64 bytes.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn byte(self, at: usize) -> __m512i {
        // SAFETY: by the caller's promise.
        let e = self.at.map(|row| unsafe { *row.add(at) });
        // SAFETY: `e` is 16 bytes.
        _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(e.as_ptr().cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn f16(self, offset: usize) -> __m512 {
        let rows = self.at;
        // SAFETY: by the caller's promise; the read is unaligned.
        let h = rows.map(|row| unsafe { row.add(offset).cast::<i16>().read_unaligned() });
        // SAFETY: `h` is 32 bytes.
        _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(h.as_ptr().cast()) })
    }

    /// The same block of the next rows.
    #[inline]
    fn prefetch(self, bytes: Range<usize>) {
        for row in self.at {
            let next = row.wrapping_add(ROWS * self.row_bytes + bytes.start);
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
    /// The first of the tile's rows, 0.
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
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn sixteen(self, at: usize) -> [__m512i; 4] {
        // SAFETY: four fields of four bytes for 16 rows, by the caller's promise.
        std::array::from_fn(|g| unsafe {
            let field = self.column.add((at + 4 * g) * TILE_ROWS + 4 * self.first);
            _mm512_loadu_si512(field.cast())
        })
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn four(self, at: usize) -> __m512i {
        // SAFETY: a field of four bytes for 16 rows, by the caller's promise.
        unsafe {
            let field = self.column.add(at * TILE_ROWS + 4 * self.first);
            _mm512_loadu_si512(field.cast())
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn byte(self, at: usize) -> __m512i {
        // SAFETY: a field of one byte for 16 rows, by the caller's promise.
        unsafe {
            let field = self.column.add(at * TILE_ROWS + self.first);
            _mm512_cvtepu8_epi32(_mm_loadu_si128(field.cast()))
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn f16(self, at: usize) -> __m512 {
        // SAFETY: a field of two bytes for 16 rows, by the caller's promise.
        unsafe {
            let field = self.column.add(at * TILE_ROWS + 2 * self.first);
            _mm512_cvtph_ps(_mm256_loadu_si256(field.cast()))
        }
    }

    #[inline]
    fn prefetch(self, bytes: Range<usize>) {
        ahead(self.column, TILE_ROWS * bytes.start..TILE_ROWS * bytes.end);
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
    /// Its weights.
    weights: *const u8,
    /// The rows' least scales.
    least: __m512i,
}

impl Packed {
    /// The rows of a tile of so many block columns.
    ///
    /// # Safety
    /// The machine has AVX-512 F; `tile` is a whole one.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn new(tile: *const u8, columns: usize) -> Self {
        // SAFETY: by the caller's promise.
        unsafe {
            Self {
                distances: tile.add(LEAST),
                weights: tile.add(weights_at(columns)),
                least: _mm512_cvtepu8_epi32(_mm_loadu_si128(tile.cast())),
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
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn sixteen(self, at: usize) -> [__m512i; 4] {
        debug_assert_eq!(at, 1, "MXFP4");
        // SAFETY: four fields of four bytes for 16 rows.
        std::array::from_fn(|g| unsafe {
            _mm512_loadu_si512(self.weights.add(4 * g * TILE_ROWS).cast())
        })
    }

    unsafe fn four(self, _at: usize) -> __m512i {
        unreachable!("MXFP4 has no such field")
    }

    /// The scale, which is at byte 0 of a block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn byte(self, at: usize) -> __m512i {
        debug_assert_eq!(at, 0, "MXFP4");
        // SAFETY: eight bytes of distances.
        let low = unsafe { _mm_loadl_epi64(self.distances.cast()) };
        let both = _mm_unpacklo_epi64(low, _mm_srli_epi16::<4>(low));
        let distances = _mm512_cvtepu8_epi32(_mm_and_si128(both, _mm_set1_epi8(15)));
        _mm512_add_epi32(self.least, distances)
    }

    unsafe fn f16(self, _at: usize) -> __m512 {
        unreachable!("MXFP4 has no f16")
    }

    /// Distances are few and lie in a row.
    #[inline]
    fn prefetch(self, _bytes: Range<usize>) {
        ahead(self.weights, 0..WEIGHTS);
    }
}
