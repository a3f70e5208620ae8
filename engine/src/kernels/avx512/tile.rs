//! The loop over tiles: sixteen rows at a time, each block decoded once for a run of tokens.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::ops::Range;

use super::formats::{Mxfp4, Q4_0, Q4_1, Q8_0};
use super::k_quants::{Q4K, Q5K, Q6K};
use super::place::{Packed, Place, ROWS, Rows, Tile};
use crate::formats::blocks::GgmlType;
use crate::formats::tiles::TILE_ROWS;
use crate::kernels::activations::ActBlock;
use crate::kernels::by_format::by_format;
use crate::kernels::{Activations, Layout, Matrix, Precision, RUN};

/// A block format over sixteen rows. Row r of a register's lanes is row r of the tile.
pub(super) trait Format {
    /// Bytes of a block.
    const BYTES: usize;
    /// Parts of 32 weights in a block.
    const PARTS: usize = 1;
    /// A part of each row, ready for any number of tokens.
    type Block: Copy;

    /// Decodes a part of the blocks at a place.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW and VNNI; the rows have a block there, and it has that part.
    unsafe fn decode(place: impl Place, part: usize) -> Self::Block;

    /// Adds a part's products with one token's activations.
    ///
    /// # Safety
    /// The machine has AVX-512 F, BW and VNNI.
    unsafe fn step(acc: __m512, block: Self::Block, x: &ActBlock) -> __m512;
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
    // SAFETY: reached only through `Isa(Level::Avx512)`, which only detection of AVX-512 F, BW and VNNI
    // makes; `matmul` has checked the shapes.
    unsafe {
        if w.layout == Layout::PackedScales {
            return packed_strip(w, rows, x, tokens, precision, out);
        }
        by_format!(w.ty, strip(w, rows, x, tokens, precision, out));
    }
}

/// Rows of `w` at a time, from `rows` to `tokens` outputs in `out`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn strip<F: Format>(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    let inputs = Inputs { x, precision };
    match w.layout {
        Layout::Rows => {
            let place = |first: usize| {
                let count = ROWS.min(rows.end - first);
                Rows {
                    // The last rows repeat in the lanes that are not stored.
                    at: std::array::from_fn(|i| w.row(first + i.min(count - 1)).as_ptr()),
                    row_bytes: w.row_bytes(),
                }
            };
            // SAFETY: `matmul` checked that the matrix has its rows, of `blocks` blocks each.
            unsafe { each_tile::<F, _>(rows.start, place, rows.clone(), inputs, tokens, out) };
        }
        Layout::PackedScales | Layout::Planes | Layout::HighPlanes => {
            unreachable!("they have their own places")
        }
        Layout::Tiles => {
            let start = rows.start / TILE_ROWS * TILE_ROWS;
            let place = |first: usize| Tile {
                column: w.tile(first / TILE_ROWS).as_ptr(),
                first: 0,
            };
            // SAFETY: `Matrix::tile` gave a whole tile, of `blocks` blocks a row.
            unsafe { each_tile::<F, _>(start, place, rows.clone(), inputs, tokens, out) };
        }
    }
}

/// As [`strip`], of MXFP4 with packed scales.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn packed_strip(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    let start = rows.start / TILE_ROWS * TILE_ROWS;
    let columns = w.cols / w.ty.block_len();
    let place = |first: usize| {
        let tile = w.tile(first / TILE_ROWS);
        // SAFETY: the machine has AVX-512 F; `Matrix::tile` gave a whole tile.
        unsafe { Packed::new(tile.as_ptr(), columns) }
    };
    let inputs = Inputs { x, precision };
    // SAFETY: the tile has `blocks` blocks a row.
    unsafe { each_tile::<Mxfp4, _>(start, place, rows, inputs, tokens, out) };
}

/// Sixteen rows at a time from `start` on; those outside `rows` are not stored.
///
/// # Safety
/// The rows at each place have `inputs.blocks()` blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn each_tile<F: Format, P: Place>(
    start: usize,
    place: impl Fn(usize) -> P,
    rows: Range<usize>,
    inputs: Inputs<'_>,
    tokens: Range<usize>,
    out: &mut [f32],
) {
    let width = rows.len();
    for first in (start..rows.end).step_by(ROWS) {
        // Lane r of `acc` is row `first + r`.
        let mut put = |t: usize, acc: __m512| {
            let mut lanes = [0f32; ROWS];
            // SAFETY: `lanes` holds sixteen floats.
            unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), acc) };
            let (from, to) = (first.max(rows.start), (first + ROWS).min(rows.end));
            let at = (t - tokens.start) * width + (from - rows.start);
            out[at..at + (to - from)].copy_from_slice(&lanes[from - first..to - first]);
        };
        // SAFETY: by the caller's promise.
        unsafe {
            if tokens.len() == 1 {
                put(
                    tokens.start,
                    one_token::<F, P>(place(first), inputs, tokens.start),
                );
            } else {
                some_tokens::<F, P>(place(first), inputs, tokens.clone(), put);
            }
        }
    }
}

/// The digits of a batch, and the blocks of a token.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    x: &'a Activations,
    precision: Precision,
}

impl Inputs<'_> {
    fn blocks(self) -> usize {
        self.x.k / 32
    }
}

/// One token against the rows at a place.
///
/// # Safety
/// The rows have `inputs.blocks()` blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn one_token<F: Format, P: Place>(place: P, inputs: Inputs<'_>, t: usize) -> __m512 {
    let mut acc = _mm512_setzero_ps();
    let digits = inputs.x.digits(inputs.precision);
    for run in inputs.x.runs(t..t + 1) {
        for b in 0..inputs.blocks() {
            // SAFETY: this function's features include those of the format's; a row has that many
            // blocks (checked by `matmul`).
            unsafe {
                let (part, place) = (b % F::PARTS, place.forward(b / F::PARTS, F::BYTES));
                place.prefetch(F::BYTES * part / F::PARTS..F::BYTES * (part + 1) / F::PARTS);
                let block = F::decode(place, part);
                for digit in 0..digits {
                    acc = F::step(acc, block, &run.blocks(digit, b)[0]);
                }
            }
        }
    }
    acc
}

/// Each block decoded once for the tokens of a run; `put` takes each token's sums.
///
/// # Safety
/// As [`one_token`].
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn some_tokens<F: Format, P: Place>(
    place: P,
    inputs: Inputs<'_>,
    tokens: Range<usize>,
    mut put: impl FnMut(usize, __m512),
) {
    let digits = inputs.x.digits(inputs.precision);
    for run in inputs.x.runs(tokens) {
        let mut accs = [_mm512_setzero_ps(); RUN];
        for b in 0..inputs.blocks() {
            // SAFETY: as in `one_token`.
            let block = unsafe { F::decode(place.forward(b / F::PARTS, F::BYTES), b % F::PARTS) };
            for digit in 0..digits {
                for (x, acc) in run.blocks(digit, b).iter().zip(&mut accs) {
                    // SAFETY: as above.
                    *acc = unsafe { F::step(*acc, block, x) };
                }
            }
        }
        for (t, acc) in run.tokens.zip(accs) {
            put(t, acc);
        }
    }
}
