//! The loop over tiles: eight rows at a time, each block decoded once for a run of tokens.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::ops::Range;

use super::formats::{Mxfp4, Q4_0, Q4_1, Q8_0};
use crate::formats::blocks::GgmlType;
use crate::kernels::activations::ActBlock;
use crate::kernels::{Activations, Matrix, Precision};

/// Rows in a tile: one a lane.
pub(super) const ROWS: usize = 8;
/// Tokens that share one decoding of a tile's weights; their accumulators stay in L1.
const TOKENS: usize = 32;

/// A block format over eight rows. Row r of a register's lanes is row r of the tile.
pub(super) trait Format {
    /// Bytes of a block.
    const BYTES: usize;
    /// A block of each row, ready for any number of tokens.
    type Block: Copy;

    /// Decodes the blocks at the eight pointers.
    ///
    /// # Safety
    /// The machine has AVX2 and F16C; each pointer has `BYTES` readable bytes.
    unsafe fn decode(rows: [*const u8; ROWS]) -> Self::Block;

    /// Adds a block's products with one token's activations.
    ///
    /// # Safety
    /// The machine has AVX2.
    unsafe fn step(acc: __m256, block: Self::Block, x: ActBlock<'_>) -> __m256;
}

/// See [`crate::kernels::matmul`]. The caller holds an `Isa` of this level.
pub(in crate::kernels) fn quantised(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    // SAFETY: reached only through `Isa(Level::Avx2)`, which only detection of AVX2 and F16C
    // makes; `matmul` has checked the shapes.
    unsafe {
        match w.ty {
            GgmlType::Mxfp4 => strip::<Mxfp4>(w, rows, x, tokens, precision, out),
            GgmlType::Q8_0 => strip::<Q8_0>(w, rows, x, tokens, precision, out),
            GgmlType::Q4_0 => strip::<Q4_0>(w, rows, x, tokens, precision, out),
            GgmlType::Q4_1 => strip::<Q4_1>(w, rows, x, tokens, precision, out),
            GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 => {
                unreachable!("float weights take the float kernels")
            }
        }
    }
}

#[target_feature(enable = "avx2,f16c")]
fn strip<F: Format>(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    let width = rows.len();
    for first in rows.clone().step_by(ROWS) {
        let count = ROWS.min(rows.end - first);
        // A short tile repeats its last row in the lanes that are not stored.
        let tile: [&[u8]; ROWS] = std::array::from_fn(|i| w.row(first + i.min(count - 1)));
        let mut start = tokens.start;
        while start < tokens.end {
            let run = start..(start + TOKENS).min(tokens.end);
            let mut acc = [_mm256_setzero_ps(); TOKENS];
            if run.len() == 1 {
                acc[0] = one_token::<F>(&tile, x, start, precision);
            } else {
                some_tokens::<F>(&tile, x, run.clone(), precision, &mut acc);
            }
            for (t, acc) in run.clone().zip(acc) {
                let mut lanes = [0f32; ROWS];
                // SAFETY: `lanes` holds eight floats.
                unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), acc) };
                let at = (t - tokens.start) * width + (first - rows.start);
                out[at..at + count].copy_from_slice(&lanes[..count]);
            }
            start = run.end;
        }
    }
}

#[target_feature(enable = "avx2,f16c")]
fn one_token<F: Format>(
    tile: &[&[u8]; ROWS],
    x: &Activations,
    t: usize,
    precision: Precision,
) -> __m256 {
    let digits = x.digits(precision);
    let blocks = x.k / 32;
    let mut acc = _mm256_setzero_ps();
    for b in 0..blocks {
        prefetch_next_tile::<F>(tile, b);
        // SAFETY: this function's features include those of the format's; a row has
        // `x.k / 32` blocks (checked by `matmul`).
        unsafe {
            let block = F::decode(block_pointers::<F>(tile, b));
            for digit in digits {
                acc = F::step(acc, block, digit.block(t * blocks + b));
            }
        }
    }
    acc
}

#[target_feature(enable = "avx2,f16c")]
fn some_tokens<F: Format>(
    tile: &[&[u8]; ROWS],
    x: &Activations,
    run: Range<usize>,
    precision: Precision,
    acc: &mut [__m256; TOKENS],
) {
    let digits = x.digits(precision);
    let blocks = x.k / 32;
    for b in 0..blocks {
        // SAFETY: this function's features include those of the format's; a row has
        // `x.k / 32` blocks (checked by `matmul`).
        let block = unsafe { F::decode(block_pointers::<F>(tile, b)) };
        for (t, acc) in run.clone().zip(acc.iter_mut()) {
            for digit in digits {
                // SAFETY: as above.
                *acc = unsafe { F::step(*acc, block, digit.block(t * blocks + b)) };
            }
        }
    }
}

/// Asks for what the next tile's rows hold at this distance from their start: rows lie one after
/// another, so while block `b` of this tile is at work, its share of the next tile comes closer.
#[inline]
fn prefetch_next_tile<F: Format>(tile: &[&[u8]; ROWS], b: usize) {
    let share = ROWS * F::BYTES;
    let next = tile[0]
        .as_ptr()
        .wrapping_add(ROWS * tile[0].len() + b * share);
    for line in (0..share).step_by(64) {
        // SAFETY: prefetching has no effect but on caches, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(line).cast()) };
    }
}

/// Where block `b` of each row starts.
///
/// # Safety
/// Each row has more than `b` blocks.
#[inline]
unsafe fn block_pointers<F: Format>(tile: &[&[u8]; ROWS], b: usize) -> [*const u8; ROWS] {
    // SAFETY: by the caller's promise the offset lies inside each row.
    tile.map(|row| unsafe { row.as_ptr().add(b * F::BYTES) })
}
