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
use super::place::{Place, ROWS, Rows, Tile};
use crate::formats::blocks::GgmlType;
use crate::formats::tiles::TILE_ROWS;
use crate::kernels::activations::ActBlock;
use crate::kernels::by_format::by_format;
use crate::kernels::{Activations, Layout, Matrix, Precision, RUN};

/// Registers of rows in a tile.
const HALVES: usize = TILE_ROWS / ROWS;

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
    let width = rows.len();
    // Lane r of `acc` is row `first + r`; rows outside the strip are not stored.
    let mut store = |first: usize, t: usize, acc: __m512| {
        let mut lanes = [0f32; ROWS];
        // SAFETY: `lanes` holds sixteen floats.
        unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), acc) };
        let from = first.max(rows.start);
        let to = (first + ROWS).min(rows.end);
        let at = (t - tokens.start) * width + (from - rows.start);
        out[at..at + (to - from)].copy_from_slice(&lanes[from - first..to - first]);
    };
    match w.layout {
        Layout::Rows => {
            for first in rows.clone().step_by(ROWS) {
                let count = ROWS.min(rows.end - first);
                // The last rows repeat in the lanes that are not stored.
                let at = std::array::from_fn(|i| w.row(first + i.min(count - 1)).as_ptr());
                let row_bytes = w.row_bytes();
                let place = Rows { at, row_bytes };
                if tokens.len() == 1 {
                    // SAFETY: `matmul` checked that the matrix has its rows, of `blocks` blocks each.
                    let [acc] = unsafe { one_token::<F, _, 1>([place], inputs, tokens.start) };
                    store(first, tokens.start, acc);
                } else {
                    let put = |t, acc| store(first, t, acc);
                    // SAFETY: as above.
                    unsafe { some_tokens::<F, _>(place, inputs, tokens.clone(), put) };
                }
            }
        }
        Layout::Planes | Layout::HighPlanes => unreachable!("AVX2 does planes"),
        Layout::Tiles => {
            for tile in rows.start / TILE_ROWS..rows.end.div_ceil(TILE_ROWS) {
                let column = w.tile(tile).as_ptr();
                let place = |half: usize| Tile {
                    column,
                    first: half * ROWS,
                };
                let first = |half: usize| tile * TILE_ROWS + half * ROWS;
                if tokens.len() == 1 {
                    let places: [Tile; HALVES] = std::array::from_fn(place);
                    // SAFETY: `Matrix::tile` gave a whole tile, of `blocks` blocks a row.
                    let accs = unsafe { one_token::<F, _, HALVES>(places, inputs, tokens.start) };
                    for (half, acc) in accs.into_iter().enumerate() {
                        if first(half) < rows.end && first(half) + ROWS > rows.start {
                            store(first(half), tokens.start, acc);
                        }
                    }
                    continue;
                }
                for half in 0..HALVES {
                    if first(half) < rows.end && first(half) + ROWS > rows.start {
                        let put = |t, acc| store(first(half), t, acc);
                        // SAFETY: as above.
                        unsafe { some_tokens::<F, _>(place(half), inputs, tokens.clone(), put) };
                    }
                }
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

/// One token against the rows at `places`.
///
/// # Safety
/// The rows at each place have `inputs.blocks()` blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn one_token<F: Format, P: Place, const H: usize>(
    places: [P; H],
    inputs: Inputs<'_>,
    t: usize,
) -> [__m512; H] {
    let mut accs = [_mm512_setzero_ps(); H];
    let digits = inputs.x.digits(inputs.precision);
    for run in inputs.x.runs(t..t + 1) {
        for b in 0..inputs.blocks() {
            for (h, (place, acc)) in places.iter().zip(&mut accs).enumerate() {
                // SAFETY: this function's features include those of the format's; a row has
                // that many blocks (checked by `matmul`).
                unsafe {
                    let (part, place) = (b % F::PARTS, place.forward(b / F::PARTS, F::BYTES));
                    if h == 0 {
                        place
                            .prefetch(F::BYTES * part / F::PARTS..F::BYTES * (part + 1) / F::PARTS);
                    }
                    let block = F::decode(place, part);
                    for digit in 0..digits {
                        *acc = F::step(*acc, block, &run.blocks(digit, b)[0]);
                    }
                }
            }
        }
    }
    accs
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
