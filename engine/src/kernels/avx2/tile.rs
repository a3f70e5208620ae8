//! The loop over tiles: sixteen rows at a time, each block decoded once for a run of tokens.

// (The lint does not fire in a test build, where `expect` would be unfulfilled.)
#[allow(
    clippy::wildcard_imports,
    reason = "a kernel names dozens of intrinsics"
)]
use std::arch::x86_64::*;
use std::ops::Range;

use super::formats::{Mxfp4, Q4_0, Q4_1, Q8_0, small_dots, vnni_dots};
use super::k_quants::{Q4K, Q5K, Q6K};
use super::place::{Packed, Place, ROWS, Rows, Tile};
use crate::formats::blocks::GgmlType;
use crate::formats::tiles::TILE_ROWS;
use crate::kernels::activations::{ActBlock, Run};
use crate::kernels::array::array;
use crate::kernels::by_format::by_format;
use crate::kernels::{Activations, Layout, Matrix, Precision, RUN};

/// Registers of rows in a tile.
pub(super) const HALVES: usize = TILE_ROWS / ROWS;
/// Tokens that meet a register of weights while it is loaded: with two registers of rows, their
/// sums fill twelve of the sixteen registers there are.
const TOGETHER: usize = 6;

/// 32 weights of each of `H` times eight rows: `[g][h]` holds weights 4g to 4g + 3, a row of
/// register h in each 32-bit lane.
pub(super) type Panel<const H: usize> = [[__m256i; H]; 8];

/// The f32 sums of some tokens, sixteen rows each.
#[repr(align(32))]
struct Sums([[f32; TILE_ROWS]; RUN]);

/// A block format over eight rows. Row r of a register's lanes is row r of the tile.
pub(super) trait Format {
    /// Bytes of a block.
    const BYTES: usize;
    /// Parts of 32 weights in a block.
    const PARTS: usize = 1;
    /// What decoded weights, which are unsigned, are above what the products are to be of.
    const OFFSET: i16 = 0;
    /// The scales of a part of each row.
    type Scale: Copy;

    /// Decodes a part of the blocks at a place: eight registers of weights, and the scales.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C; the rows have a block there, and it has that part.
    unsafe fn decode(place: impl Place, part: usize) -> ([__m256i; 8], Self::Scale);

    /// The integer sums of the weights' products with each token's activations, a row in each
    /// 32-bit lane; of each half of them times its scale where halves have their own.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn dots<const T: usize, const H: usize>(
        panel: &Panel<H>,
        _scales: &[Self::Scale; H],
        x: &[ActBlock; T],
    ) -> [[__m256i; H]; T] {
        small_dots(Self::OFFSET, panel, x)
    }

    /// As [`Format::dots`], by VNNI.
    ///
    /// # Safety
    /// The machine has AVX2, FMA, F16C and AVX-VNNI.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
    unsafe fn dots_vnni<const T: usize, const H: usize>(
        panel: &Panel<H>,
        _scales: &[Self::Scale; H],
        x: &[ActBlock; T],
    ) -> [[__m256i; H]; T] {
        vnni_dots(Self::OFFSET, panel, x)
    }

    /// Whether [`Format::add`] may be told so: the scales are such that with activations' scales
    /// of 0, or of `least` and more, a shorter way gives the same bits.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C.
    unsafe fn is_plain(_scale: Self::Scale, _least: f32) -> bool {
        true
    }

    /// Adds the products of a block with one token's activations.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C.
    unsafe fn add<const PLAIN: bool>(
        acc: __m256,
        isum: __m256i,
        scale: Self::Scale,
        x: &ActBlock,
    ) -> __m256;
}

/// See [`crate::kernels::matmul`]. The caller holds an `Isa` of this level, with `VNNI` of AVX-VNNI's.
///
/// `VNNI` is for the products with several tokens; one token waits for memory either way.
pub(in crate::kernels) fn quantised<const VNNI: bool>(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    // SAFETY: reached only through `Isa`s of these levels, which only detection of AVX2, FMA and F16C,
    // and with `VNNI` AVX-VNNI, makes; `matmul` has checked the shapes.
    unsafe {
        if w.layout == Layout::PackedScales {
            return packed_strip::<VNNI>(w, rows, x, tokens, precision, out);
        }
        by_format!(w.ty, strip<VNNI>(w, rows, x, tokens, precision, out));
    }
}

/// As [`strip`], of MXFP4 with packed scales.
#[target_feature(enable = "avx2,fma,f16c")]
fn packed_strip<const VNNI: bool>(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    let start = rows.start / TILE_ROWS * TILE_ROWS;
    let columns = w.cols / w.ty.block_len();
    let place = |first: usize, half: usize| {
        let tile = w.tile(first / TILE_ROWS);
        // SAFETY: the machine has AVX2; `Matrix::tile` gave a whole tile.
        unsafe { Packed::new(tile.as_ptr(), columns, half * ROWS) }
    };
    // SAFETY: a row has `x.k / 32` blocks; `matmul` has checked that the widths agree.
    unsafe {
        each_tile::<Mxfp4, _, VNNI>(start, place, rows, x, tokens, precision, out);
    }
}

/// Rows of `w` at a time, from `rows` to `tokens` outputs in `out`.
#[target_feature(enable = "avx2,fma,f16c")]
fn strip<F: Format, const VNNI: bool>(
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    match w.layout {
        Layout::Rows => {
            let place = |first: usize, half: usize| Rows {
                // The last rows repeat in the lanes that are not stored.
                at: std::array::from_fn(|i| {
                    w.row((first + half * ROWS + i).min(rows.end - 1)).as_ptr()
                }),
                row_bytes: w.row_bytes(),
            };
            // SAFETY: a row has `x.k / 32` blocks; `matmul` has checked that the widths agree.
            unsafe {
                each_tile::<F, _, VNNI>(rows.start, place, rows.clone(), x, tokens, precision, out);
            }
        }
        Layout::PackedScales | Layout::Planes | Layout::HighPlanes => {
            unreachable!("they have their own places")
        }
        Layout::Tiles => {
            let start = rows.start / TILE_ROWS * TILE_ROWS;
            let place = |first: usize, half: usize| Tile {
                column: w.tile(first / TILE_ROWS).as_ptr(),
                first: half * ROWS,
            };
            // SAFETY: as above, for the rows of a whole tile.
            unsafe {
                each_tile::<F, _, VNNI>(start, place, rows.clone(), x, tokens, precision, out);
            }
        }
    }
}

/// Sixteen rows at a time from `start` on; those outside `rows` are not stored.
///
/// # Safety
/// The rows at each place have `x.k / 32` blocks.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn each_tile<F: Format, P: Place, const VNNI: bool>(
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
            let places: [P; HALVES] = std::array::from_fn(|half| place(first, half));
            let (from, to) = (first.max(rows.start), (first + TILE_ROWS).min(rows.end));
            let mut put = |t: usize, sums: &[f32; TILE_ROWS]| {
                let at = (t - tokens.start) * width + (from - rows.start);
                out[at..at + (to - from)].copy_from_slice(&sums[from - first..to - first]);
            };
            // SAFETY: by the caller's promise.
            unsafe {
                if run.tokens.len() == 1 {
                    put(
                        run.tokens.start,
                        &one_token::<F, P>(places, digits, blocks, &run),
                    );
                    continue;
                }
                let mut sums = Sums([[0.0; TILE_ROWS]; RUN]);
                some_tokens::<F, P, VNNI>(places, digits, blocks, &run, x.least_scale, &mut sums);
                for (t, sums) in run.tokens.clone().zip(&sums.0) {
                    put(t, sums);
                }
            }
        }
    }
}

/// The weights that meet block `b` of the activations, and a glance ahead.
///
/// # Safety
/// The machine has AVX2, FMA and F16C; the rows have those weights.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn part<F: Format, P: Place>(place: P, b: usize) -> ([__m256i; 8], F::Scale) {
    let part = b % F::PARTS;
    // SAFETY: by the caller's promise.
    unsafe {
        let place = place.forward(b / F::PARTS, F::BYTES);
        place.prefetch(F::BYTES * part / F::PARTS..F::BYTES * (part + 1) / F::PARTS);
        F::decode(place, part)
    }
}

/// One token, each block of weights used as it is decoded.
///
/// # Safety
/// The rows at each place have `blocks` blocks.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn one_token<F: Format, P: Place>(
    places: [P; HALVES],
    digits: usize,
    blocks: usize,
    run: &Run<'_>,
) -> [f32; TILE_ROWS] {
    let mut accs = [_mm256_setzero_ps(); HALVES];
    for b in 0..blocks {
        for (place, acc) in places.iter().zip(&mut accs) {
            // SAFETY: this function's features are the format's; the row has block b.
            unsafe {
                let (groups, scale) = part::<F, P>(*place, b);
                for digit in 0..digits {
                    let x = &run.blocks(digit, b)[0];
                    let panel: Panel<1> = array(|g| [groups[g]]);
                    let [[isum]] = F::dots(&panel, &[scale], std::array::from_ref(x));
                    *acc = F::add::<false>(*acc, isum, scale, x);
                }
            }
        }
    }
    let mut out = [0f32; TILE_ROWS];
    for (acc, out) in accs.into_iter().zip(out.as_chunks_mut::<ROWS>().0) {
        // SAFETY: eight floats.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), acc) };
    }
    out
}

/// Each block of weights decoded once for all tokens of a run; `sums` take theirs.
///
/// # Safety
/// As [`one_token`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn some_tokens<F: Format, P: Place, const VNNI: bool>(
    places: [P; HALVES],
    digits: usize,
    blocks: usize,
    run: &Run<'_>,
    least: f32,
    sums: &mut Sums,
) {
    for b in 0..blocks {
        // SAFETY: this function's features are the format's; the rows have block b.
        unsafe {
            let [low, high] = places;
            let (low, low_scale) = part::<F, P>(low, b);
            let (high, high_scale) = part::<F, P>(high, b);
            let panel: Panel<HALVES> = array(|g| [low[g], high[g]]);
            let scales = [low_scale, high_scale];
            let plain = F::is_plain(low_scale, least) && F::is_plain(high_scale, least);
            for digit in 0..digits {
                let x = run.blocks(digit, b);
                if plain {
                    add_tokens::<F, true, VNNI>(&panel, scales, x, sums);
                } else {
                    add_tokens::<F, false, VNNI>(&panel, scales, x, sums);
                }
            }
        }
    }
}

/// Adds a block's products with the tokens of `x` to their sums.
///
/// # Safety
/// The machine has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_tokens<F: Format, const PLAIN: bool, const VNNI: bool>(
    panel: &Panel<HALVES>,
    scales: [F::Scale; HALVES],
    x: &[ActBlock],
    sums: &mut Sums,
) {
    let (sixes, rest) = x.as_chunks::<TOGETHER>();
    let (six_sums, rest_sums) = sums.0[..x.len()].as_chunks_mut::<TOGETHER>();
    // SAFETY: by the caller's promise.
    unsafe {
        for (x, sums) in sixes.iter().zip(six_sums) {
            a_few::<F, PLAIN, VNNI, TOGETHER>(panel, scales, x, sums);
        }
        let four = rest.len() & 4;
        if four != 0
            && let Some((x, _)) = rest.split_first_chunk()
            && let Some((sums, _)) = rest_sums.split_first_chunk_mut()
        {
            a_few::<F, PLAIN, VNNI, 4>(panel, scales, x, sums);
        }
        let (rest, rest_sums) = (&rest[four..], &mut rest_sums[four..]);
        if rest.len() & 2 != 0
            && let Some((x, _)) = rest.split_first_chunk()
            && let Some((sums, _)) = rest_sums.split_first_chunk_mut()
        {
            a_few::<F, PLAIN, VNNI, 2>(panel, scales, x, sums);
        }
        if rest.len() & 1 != 0
            && let Some((_, x)) = rest.split_last_chunk()
            && let Some((_, sums)) = rest_sums.split_last_chunk_mut()
        {
            a_few::<F, PLAIN, VNNI, 1>(panel, scales, x, sums);
        }
    }
}

/// As [`add_tokens`], for a few tokens.
///
/// # Safety
/// The machine has AVX2, FMA and F16C, with `VNNI` AVX-VNNI as well.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn a_few<F: Format, const PLAIN: bool, const VNNI: bool, const T: usize>(
    panel: &Panel<HALVES>,
    scales: [F::Scale; HALVES],
    x: &[ActBlock; T],
    sums: &mut [[f32; TILE_ROWS]; T],
) {
    // SAFETY: by the caller's promise.
    unsafe {
        if VNNI {
            together_by_vnni::<F, PLAIN, T>(panel, scales, x, sums);
        } else {
            together::<F, PLAIN, T>(panel, scales, x, sums);
        }
    }
}

/// As [`add_tokens`], for tokens whose sums stay in registers; once for each kind of dot products,
/// as the instructions that a function may use are no parameter.
macro_rules! together {
    ($name:ident, $dots:ident, $features:literal) => {
        /// # Safety
        /// The machine has the features.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $name<F: Format, const PLAIN: bool, const T: usize>(
            panel: &Panel<HALVES>,
            scales: [F::Scale; HALVES],
            x: &[ActBlock; T],
            sums: &mut [[f32; TILE_ROWS]; T],
        ) {
            // SAFETY: by the caller's promise; each half of `sums` is eight floats.
            unsafe {
                let isums = F::$dots(panel, &scales, x);
                for t in 0..T {
                    for h in 0..HALVES {
                        let at = sums[t].as_mut_ptr().add(h * ROWS);
                        let acc = _mm256_loadu_ps(at);
                        let acc = F::add::<PLAIN>(acc, isums[t][h], scales[h], &x[t]);
                        _mm256_storeu_ps(at, acc);
                    }
                }
            }
        }
    };
}

together!(together, dots, "avx2,fma,f16c");
together!(together_by_vnni, dots_vnni, "avx2,fma,f16c,avxvnni");
