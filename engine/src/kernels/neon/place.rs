//! Where the blocks of four rows lie: in the rows of a file, or in a tile.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::aarch64::*;

use super::instructions::widen;
use crate::formats::packed_scales::{DISTANCES, LEAST, WEIGHTS, weights_at};
use crate::formats::tiles::TILE_ROWS;

/// Rows in the lanes of a register.
pub(super) const ROWS: usize = 4;

/// One block of each of four rows. Offsets are those of a field inside a block; lane r is row r.
pub(super) trait Place: Copy {
    /// This place, `blocks` blocks of `bytes` further along the rows.
    ///
    /// # Safety
    /// The rows have that many more blocks.
    unsafe fn forward(self, blocks: usize, bytes: usize) -> Self;

    /// 16 bytes of each row: register g has bytes 4g to 4g + 3.
    ///
    /// # Safety
    /// The block has 16 bytes at `at`.
    unsafe fn sixteen(self, at: usize) -> [uint8x16_t; 4];

    /// Four bytes of each row.
    ///
    /// # Safety
    /// The block has four bytes at `at`, which are a field of a tile.
    unsafe fn four(self, at: usize) -> uint32x4_t;

    /// One byte of each row, widened to 32 bits.
    ///
    /// # Safety
    /// The block has a byte at `at`.
    unsafe fn byte(self, at: usize) -> uint32x4_t;

    /// One f16 of each row, widened.
    ///
    /// # Safety
    /// The block has two bytes at `at`.
    unsafe fn f16(self, at: usize) -> float32x4_t;
}

/// Four bytes, each widened to 32 bits.
#[inline]
#[target_feature(enable = "neon")]
fn widen_bytes(bytes: [u8; ROWS]) -> uint32x4_t {
    let bytes = vcreate_u8(u64::from(u32::from_le_bytes(bytes)));
    vmovl_u16(vget_low_u16(vmovl_u8(bytes)))
}

/// Rows as they lie in a file.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// The block of each row.
    pub(super) at: [*const u8; ROWS],
}

impl Place for Rows {
    #[inline]
    unsafe fn forward(self, blocks: usize, bytes: usize) -> Self {
        Self {
            // SAFETY: by the caller's promise.
            at: self.at.map(|row| unsafe { row.add(blocks * bytes) }),
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn sixteen(self, at: usize) -> [uint8x16_t; 4] {
        // SAFETY: by the caller's promise.
        let [a, b, c, d] = self
            .at
            .map(|row| vreinterpretq_u32_u8(unsafe { vld1q_u8(row.add(at)) }));
        // Groups 0 and 2, and 1 and 3, of two rows each.
        let wide = |x: uint32x4_t| vreinterpretq_u64_u32(x);
        let (ab_even, ab_odd) = (wide(vtrn1q_u32(a, b)), wide(vtrn2q_u32(a, b)));
        let (cd_even, cd_odd) = (wide(vtrn1q_u32(c, d)), wide(vtrn2q_u32(c, d)));
        [
            vtrn1q_u64(ab_even, cd_even),
            vtrn1q_u64(ab_odd, cd_odd),
            vtrn2q_u64(ab_even, cd_even),
            vtrn2q_u64(ab_odd, cd_odd),
        ]
        .map(|x| vreinterpretq_u8_u64(x))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn four(self, at: usize) -> uint32x4_t {
        // SAFETY: by the caller's promise; the read is unaligned.
        let words = self
            .at
            .map(|row| unsafe { row.add(at).cast::<u32>().read_unaligned() });
        // SAFETY: four words.
        unsafe { vld1q_u32(words.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn byte(self, at: usize) -> uint32x4_t {
        // SAFETY: by the caller's promise.
        widen_bytes(self.at.map(|row| unsafe { *row.add(at) }))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn f16(self, at: usize) -> float32x4_t {
        // SAFETY: by the caller's promise; the read is unaligned.
        let halves = self
            .at
            .map(|row| unsafe { row.add(at).cast::<u16>().read_unaligned() });
        // SAFETY: four halves.
        widen(unsafe { vld1_u16(halves.as_ptr()) })
    }
}

/// Rows of a tile: a field at byte `at` of a block lies at `16 * at` of the block column.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// The block column.
    pub(super) column: *const u8,
    /// The first of the tile's rows, 0, 4, 8 or 12.
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
    #[target_feature(enable = "neon")]
    unsafe fn sixteen(self, at: usize) -> [uint8x16_t; 4] {
        // SAFETY: four fields of four bytes for 16 rows, by the caller's promise.
        std::array::from_fn(|g| unsafe {
            vld1q_u8(self.column.add((at + 4 * g) * TILE_ROWS + 4 * self.first))
        })
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn four(self, at: usize) -> uint32x4_t {
        // SAFETY: a field of four bytes for 16 rows, by the caller's promise.
        let bytes = unsafe { vld1q_u8(self.column.add(at * TILE_ROWS + 4 * self.first)) };
        vreinterpretq_u32_u8(bytes)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn byte(self, at: usize) -> uint32x4_t {
        // SAFETY: a field of one byte for 16 rows, by the caller's promise.
        widen_bytes(unsafe { *self.column.add(at * TILE_ROWS + self.first).cast() })
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn f16(self, at: usize) -> float32x4_t {
        // SAFETY: a field of two bytes for 16 rows, by the caller's promise.
        let halves = unsafe { vld1_u8(self.column.add(at * TILE_ROWS + 2 * self.first)) };
        widen(vreinterpret_u16_u8(halves))
    }
}

/// Rows of an MXFP4 tile with packed scales (`formats::packed_scales`).
#[derive(Clone, Copy)]
pub(super) struct Packed {
    /// The distances of the block column that are of these rows, in one half of each byte or the
    /// other.
    distances: *const u8,
    /// The weights of the first of the rows.
    weights: *const u8,
    /// The rows' least scales.
    least: uint32x4_t,
    /// The first of the tile's rows, 0, 4, 8 or 12.
    first: usize,
}

impl Packed {
    /// Four rows of a tile of so many block columns from row `first` on.
    ///
    /// # Safety
    /// `tile` is a whole one.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) unsafe fn new(tile: *const u8, columns: usize, first: usize) -> Self {
        // SAFETY: by the caller's promise.
        unsafe {
            Self {
                distances: tile.add(LEAST + first % DISTANCES),
                weights: tile.add(weights_at(columns) + 4 * first),
                least: widen_bytes(*tile.add(first).cast()),
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
    #[target_feature(enable = "neon")]
    unsafe fn sixteen(self, at: usize) -> [uint8x16_t; 4] {
        debug_assert_eq!(at, 1, "MXFP4");
        // SAFETY: four fields of four bytes for 16 rows.
        std::array::from_fn(|g| unsafe { vld1q_u8(self.weights.add(4 * g * TILE_ROWS)) })
    }

    unsafe fn four(self, _at: usize) -> uint32x4_t {
        unreachable!("MXFP4 has no such field")
    }

    /// The scale, which is at byte 0 of a block.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn byte(self, at: usize) -> uint32x4_t {
        debug_assert_eq!(at, 0, "MXFP4");
        // SAFETY: four bytes of distances.
        let both = widen_bytes(unsafe { *self.distances.cast() });
        let half = if self.first < DISTANCES {
            both
        } else {
            vshrq_n_u32::<4>(both)
        };
        vaddq_u32(self.least, vandq_u32(half, vdupq_n_u32(15)))
    }

    unsafe fn f16(self, _at: usize) -> float32x4_t {
        unreachable!("MXFP4 has no f16")
    }
}
