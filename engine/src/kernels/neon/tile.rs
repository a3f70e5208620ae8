//! The loop over tiles: sixteen rows at a time, each block decoded once for a run of tokens.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::aarch64::*;
use std::ops::Range;

use super::formats::{Mxfp4, Q4_0, Q4_1, Q8_0};
use super::k_quants::{Q4K, Q5K, Q6K};
use super::place::{Packed, Place, ROWS, Rows, Tile};
use crate::formats::blocks::GgmlType;
use crate::formats::tiles::TILE_ROWS;
use crate::kernels::activations::{ActBlock, Run};
use crate::kernels::by_format::by_format;
use crate::kernels::{Activations, Layout, Matrix, Precision, RUN};

/// Registers of rows in a tile.
pub(super) const QUARTERS: usize = TILE_ROWS / ROWS;
/// Tokens that meet a register of weights while it is loaded: their sums fill half of the 32
/// registers there are.
const TOGETHER: usize = 4;

/// Eight registers of four weights a row: register g holds weights 4g to 4g + 3, a row in each
/// 32-bit lane.
pub(super) type Groups = [int8x16_t; 8];
/// Those of each four rows of a tile.
pub(super) type Panel = [Groups; QUARTERS];
/// An integer for each row of a tile.
pub(super) type Sums = [int32x4_t; QUARTERS];

/// A block format over four rows. Row r of a register's lanes is row r of the place.
pub(super) trait Format {
    /// Bytes of a block.
    const BYTES: usize;
    /// Parts of 32 weights in a block.
    const PARTS: usize = 1;
    /// The scales of a part of each row.
    type Scale: Copy;

    /// Decodes a part of the blocks at a place: eight registers of weights, and the scales.
    ///
    /// # Safety
    /// The machine has NEON with dot product; the rows have a block there, and it has that part.
    unsafe fn decode(place: impl Place, part: usize) -> (Groups, Self::Scale);

    /// The integer sums of the weights' products with each token's activations; of each half of
    /// them times its scale where halves have their own.
    ///
    /// # Safety
    /// The machine has NEON with dot product.
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn dots<const T: usize>(
        panel: &Panel,
        _scales: &[Self::Scale; QUARTERS],
        x: &[ActBlock; T],
    ) -> [Sums; T] {
        let mut sums = [[vdupq_n_s32(0); QUARTERS]; T];
        for half in 0..2 {
            add_half(&mut sums, panel, x, half);
        }
        sums
    }

    /// Adds the products of a block with one token's activations.
    ///
    /// # Safety
    /// The machine has NEON with dot product.
    unsafe fn add(
        acc: float32x4_t,
        isum: int32x4_t,
        scale: Self::Scale,
        x: &ActBlock,
    ) -> float32x4_t;
}

/// Adds the products of one half of the weights, 16 of each row, with each token's.
#[inline]
#[target_feature(enable = "neon,dotprod")]
pub(super) fn add_half<const T: usize>(
    sums: &mut [Sums; T],
    panel: &Panel,
    x: &[ActBlock; T],
    half: usize,
) {
    use super::instructions::dot;
    let q = x
        .each_ref()
        // SAFETY: 16 of the 32 bytes.
        .map(|x| unsafe { vld1q_s8(x.q[16 * half..][..16].as_ptr()) });
    for (h, groups) in panel.iter().enumerate() {
        let w = &groups[4 * half..][..4];
        for (sums, q) in sums.iter_mut().zip(q) {
            let sum = dot::<1>(dot::<0>(sums[h], w[0], q), w[1], q);
            sums[h] = dot::<3>(dot::<2>(sum, w[2], q), w[3], q);
        }
    }
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
    // SAFETY: reached only through `Isa(Level::Neon)`, which only detection of NEON and dot
    // product makes; `matmul` has checked the shapes.
    unsafe {
        if w.layout == Layout::PackedScales {
            return packed_strip(w, rows, x, tokens, precision, out);
        }
        by_format!(w.ty, strip(w, rows, x, tokens, precision, out));
    }
}

/// As [`strip`], of MXFP4 with packed scales.
#[target_feature(enable = "neon,dotprod")]
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
    let place = |first: usize, quarter: usize| {
        let tile = w.tile(first / TILE_ROWS);
        // SAFETY: `Matrix::tile` gave a whole tile.
        unsafe { Packed::new(tile.as_ptr(), columns, quarter * ROWS) }
    };
    // SAFETY: a row has `x.k / 32` blocks; `matmul` has checked that the widths agree.
    unsafe {
        each_tile::<Mxfp4, _>(start, place, rows, x, tokens, precision, out);
    }
}

/// Rows of `w` at a time, from `rows` to `tokens` outputs in `out`.
#[target_feature(enable = "neon,dotprod")]
fn strip<F: Format>(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    match w.layout {
        Layout::Rows => {
            let place = |first: usize, quarter: usize| Rows {
                // The last rows repeat in the lanes that are not stored.
                at: std::array::from_fn(|i| {
                    w.row((first + quarter * ROWS + i).min(rows.end - 1))
                        .as_ptr()
                }),
            };
            // SAFETY: a row has `x.k / 32` blocks; `matmul` has checked that the widths agree.
            unsafe {
                each_tile::<F, _>(rows.start, place, rows.clone(), x, tokens, precision, out);
            }
        }
        Layout::PackedScales | Layout::Planes | Layout::HighPlanes => {
            unreachable!("they have their own ways here")
        }
        Layout::Tiles => {
            let start = rows.start / TILE_ROWS * TILE_ROWS;
            let place = |first: usize, quarter: usize| Tile {
                column: w.tile(first / TILE_ROWS).as_ptr(),
                first: quarter * ROWS,
            };
            // SAFETY: as above, for the rows of a whole tile.
            unsafe {
                each_tile::<F, _>(start, place, rows.clone(), x, tokens, precision, out);
            }
        }
    }
}

/// Sixteen rows at a time from `start` on; those outside `rows` are not stored.
///
/// # Safety
/// The rows at each place have `x.k / 32` blocks.
#[target_feature(enable = "neon,dotprod")]
unsafe fn each_tile<F: Format, P: Place>(
    start: usize,
    place: impl Fn(usize, usize) -> P,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    let (digits, blocks, width) = (x.digits(precision), x.k / 32, rows.len());
    // A run's activations stay in L2 while the rows go by.
    for run in x.runs(tokens.clone()) {
        for first in (start..rows.end).step_by(TILE_ROWS) {
            let places: [P; QUARTERS] = std::array::from_fn(|quarter| place(first, quarter));
            let (from, to) = (first.max(rows.start), (first + TILE_ROWS).min(rows.end));
            let mut sums = [[0.0; TILE_ROWS]; RUN];
            // SAFETY: by the caller's promise.
            unsafe { one_run::<F, P>(places, digits, blocks, &run, &mut sums) };
            for (t, sums) in run.tokens.clone().zip(&sums) {
                let at = (t - tokens.start) * width + (from - rows.start);
                out[at..at + (to - from)].copy_from_slice(&sums[from - first..to - first]);
            }
        }
    }
}

/// Each block of weights decoded once for all tokens of a run; `sums` take theirs.
///
/// # Safety
/// The rows at each place have `blocks` parts of blocks.
#[target_feature(enable = "neon,dotprod")]
unsafe fn one_run<F: Format, P: Place>(
    places: [P; QUARTERS],
    digits: usize,
    blocks: usize,
    run: &Run<'_>,
    sums: &mut [[f32; TILE_ROWS]; RUN],
) {
    for b in 0..blocks {
        // SAFETY: this function's features are the format's; the rows have block b.
        let decoded = places
            .map(|place| unsafe { F::decode(place.forward(b / F::PARTS, F::BYTES), b % F::PARTS) });
        let panel = decoded.map(|(groups, _)| groups);
        let scales = decoded.map(|(_, scale)| scale);
        for digit in 0..digits {
            add_tokens::<F>(&panel, &scales, run.blocks(digit, b), sums);
        }
    }
}

/// Adds a block's products with the tokens of `x` to their sums.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_tokens<F: Format>(
    panel: &Panel,
    scales: &[F::Scale; QUARTERS],
    x: &[ActBlock],
    sums: &mut [[f32; TILE_ROWS]; RUN],
) {
    let (fours, rest) = x.as_chunks::<TOGETHER>();
    let (four_sums, rest_sums) = sums[..x.len()].as_chunks_mut::<TOGETHER>();
    for (x, sums) in fours.iter().zip(four_sums) {
        together::<F, TOGETHER>(panel, scales, x, sums);
    }
    for (x, sums) in rest
        .as_chunks::<1>()
        .0
        .iter()
        .zip(rest_sums.as_chunks_mut::<1>().0)
    {
        together::<F, 1>(panel, scales, x, sums);
    }
}

/// As [`add_tokens`], for tokens whose sums stay in registers.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn together<F: Format, const T: usize>(
    panel: &Panel,
    scales: &[F::Scale; QUARTERS],
    x: &[ActBlock; T],
    sums: &mut [[f32; TILE_ROWS]; T],
) {
    // SAFETY: this function's features are the format's.
    let isums = unsafe { F::dots(panel, scales, x) };
    for t in 0..T {
        for (h, sums) in sums[t].as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
            // SAFETY: as above; four floats.
            unsafe {
                let acc = vld1q_f32(sums.as_ptr());
                let acc = F::add(acc, isums[t][h], scales[h], &x[t]);
                vst1q_f32(sums.as_mut_ptr(), acc);
            }
        }
    }
}
