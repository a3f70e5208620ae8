//! Q8_0 matrices in planes (`formats::planes`): products, and bounds of products from the high
//! part alone.
//!
//! The weights are put together in registers (AVX2, which AVX-512 machines have, too) or a tile at
//! a time for the kernels of tiles; so the bits are those of tiles.
//!
//! The bound. Let a row have scales d, weights w, and an activation the quantised values x = sum
//! over digits of a q. With h = w & !3, w = h + r, 0 <= r <= 3. For real numbers
//!
//! ```text
//! w . x = h . x + sum_b d_b sum_j r_j x_j <= h . x + sum_b |d_b| 3 max(P_b, N_b)
//! ```
//!
//! where P_b and N_b are the sums of the positive and of the negated negative x_j of block b. Both
//! products are computed in f32, in blocks x digits additions of products rounded at most twice, so
//! each is off by at most g A, where A = sum_b |d_b| 128 Q_b bounds its terms' magnitudes, Q_b = sum
//! of |a q|, and g = m u / (1 - m u), m = blocks x digits + 2, u = 2^-24 (Higham, Accuracy and
//! Stability, 3.1 and 3.4; nothing underflows, for d >= 2^-24 and a >= 2^-100 where not 0). So with
//!
//! ```text
//! c_b = 3 max(P_b, N_b) + (2 g + 4 u) 128 Q_b
//! ```
//!
//! the computed product is at most the computed h . x plus sum_b |d_b| c_b; 4 u pays for rounding
//! that last addition, both of whose terms are below 2 A. The sum over b is computed in f32 as well, which (1 + (blocks + 4) 4 u)
//! on each c_b more than makes good. c itself is computed in f64 and rounded up.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::isa::Level;
use super::matmul::matmul;
use super::{Activations, Isa, Layout, Matrix, Precision};
use crate::formats::planes;
use crate::formats::tiles::TILE_ROWS;

/// What a weight may have in its two lowest bits.
const REST: f64 = 3.0;
/// No weight is larger.
const MOST: f64 = 128.0;
/// What the bits of an f16, at an f32's place, are to be multiplied by: an exponent's bias is 15
/// there and 127 here.
pub(super) const REBIAS: f32 = f32::from_bits((127 + 127 - 15) << 23);
/// Half the distance from 1 to the next f32.
const UNIT: f64 = 1.0 / (1 << 24) as f64;

/// See [`matmul`].
pub(super) fn product(
    isa: Isa,
    w: &Matrix<'_>,
    rows: Range<usize>,
    x: &Activations,
    tokens: Range<usize>,
    precision: Precision,
    out: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    if precision != Precision::Reference {
        match isa.0 {
            Level::Scalar => {}
            Level::Avx2 | Level::Avx512 => {
                return super::avx2::in_planes::<false>(w, rows, x, tokens, precision, out);
            }
            Level::AvxVnni => {
                return super::avx2::in_planes::<true>(w, rows, x, tokens, precision, out);
            }
        }
    }
    let width = rows.len();
    let mut tile = vec![0; w.tile_bytes()];
    let mut part = Vec::new();
    for first in (rows.start / TILE_ROWS * TILE_ROWS..rows.end).step_by(TILE_ROWS) {
        join(w, w.tile(first / TILE_ROWS), &mut tile);
        let (from, to) = (first.max(rows.start), (first + TILE_ROWS).min(rows.end));
        part.clear();
        part.resize((to - from) * tokens.len(), 0.0);
        let inner = from - first..to - first;
        let one = one_tile(w, &tile);
        matmul(isa, &one, inner, x, tokens.clone(), precision, &mut part);
        for (t, part) in part.chunks_exact(to - from).enumerate() {
            out[t * width + from - rows.start..][..to - from].copy_from_slice(part);
        }
    }
}

/// A tile of `w` as the kernels of tiles take it.
pub(super) fn join(w: &Matrix<'_>, planes: &[u8], tile: &mut [u8]) {
    if w.layout == Layout::HighPlanes {
        planes::join_high(planes, tile);
    } else {
        planes::join(planes, tile);
    }
}

fn one_tile<'a>(w: &Matrix<'_>, tile: &'a [u8]) -> Matrix<'a> {
    Matrix {
        rows: TILE_ROWS,
        layout: Layout::Tiles,
        bytes: tile,
        ty: w.ty,
        cols: w.cols,
    }
}

/// How far above the product with the high part a product can be.
#[derive(Clone, Debug)]
pub struct Slack {
    /// c of each token and block, `[n, k / 32]`.
    c: Vec<f32>,
    blocks: usize,
}

impl Slack {
    /// Of activations quantised as `precision` says, which must not be `Reference`.
    pub fn new(x: &Activations, precision: Precision) -> Self {
        let digits = x.digits(precision);
        let blocks = x.k / 32;
        let terms = (blocks * digits + 2) as f64 * UNIT;
        let g = terms / (1.0 - terms);
        let rounding = (2.0 * g + 4.0 * UNIT) * MOST;
        let sum = 1.0 + (blocks + 4) as f64 * 4.0 * UNIT;
        let mut c = Vec::with_capacity(x.n * blocks);
        for t in 0..x.n {
            for b in 0..blocks {
                let (mut value, mut size) = ([0f64; 32], 0f64);
                for digit in 0..digits {
                    let block = x.block(digit, t, b);
                    for (value, q) in value.iter_mut().zip(&block.q) {
                        let term = f64::from(*q) * f64::from(block.d);
                        *value += term; // exact: 8 bits of scale, 16 of digits
                        size += term.abs();
                    }
                }
                let positive: f64 = value.iter().filter(|v| **v > 0.0).sum();
                let negative: f64 = value.iter().filter(|v| **v < 0.0).map(|v| -v).sum();
                let exact = (REST * positive.max(negative) + rounding * size) * sum;
                c.push((exact as f32).next_up());
            }
        }
        Self { c, blocks }
    }
}

/// For the 16 rows of tile `tile` and every token, a number that no product is above: `out` is
/// `[n, 16]`. NaN where the product may be one.
pub fn upper_bounds(
    isa: Isa,
    w: &Matrix<'_>,
    tile: usize,
    x: &Activations,
    (slack, precision): (&Slack, Precision),
    out: &mut [f32],
) {
    let bytes = w.tile(tile);
    let high = Matrix {
        layout: Layout::HighPlanes,
        ..one_tile(w, bytes)
    };
    matmul(isa, &high, 0..TILE_ROWS, x, 0..x.n, precision, out);
    for (t, out) in out.as_chunks_mut::<TILE_ROWS>().0.iter_mut().enumerate() {
        let c = &slack.c[t * slack.blocks..][..slack.blocks];
        let room = room(isa, bytes, c);
        for (out, room) in out.iter_mut().zip(room) {
            *out += room;
        }
    }
}

/// Each row's sum of |d| c over the blocks.
fn room(isa: Isa, planes: &[u8], c: &[f32]) -> [f32; TILE_ROWS] {
    #[cfg(target_arch = "x86_64")]
    if isa.0 != Level::Scalar {
        return super::avx2::room(planes, c);
    }
    let _ = isa;
    let mut room = [0f32; TILE_ROWS];
    for (scales, c) in planes::scales(planes).zip(c) {
        for (room, d) in room.iter_mut().zip(scales) {
            *room += magnitude(d) * c;
        }
    }
    room
}

/// |d| of an f16, subnormal ones included; what is not finite becomes a large number.
#[inline]
fn magnitude(d: u16) -> f32 {
    f32::from_bits(u32::from(d & 0x7fff) << 13) * REBIAS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blocks::GgmlType;
    use crate::formats::tiles;
    use half::f16;
    use proptest::prelude::*;

    #[test]
    fn magnitudes_are_those_of_f16() {
        for bits in 0..0x7c00u16 {
            let expected = f16::from_bits(bits).to_f32();
            assert_eq!(magnitude(bits), expected);
            assert_eq!(magnitude(bits | 0x8000), expected);
        }
    }

    #[test]
    fn rooms_have_the_same_bits_at_every_level() {
        let blocks = 5;
        let (_, split) = tile(blocks, 0.01, 3);
        // What is not finite or subnormal counts as well.
        let mut odd = split.clone();
        for (i, bits) in [0x7c00u16, 0xfe01, 1, 0x83ff, 0x8000]
            .into_iter()
            .enumerate()
        {
            odd[2 * i..2 * i + 2].copy_from_slice(&bits.to_le_bytes());
        }
        let c: Vec<f32> = (0..blocks).map(|b| 0.1 + b as f32).collect();
        for bytes in [split, odd] {
            let expected = room(Isa::SCALAR, &bytes, &c).map(f32::to_bits);
            for isa in Isa::available() {
                assert_eq!(room(isa, &bytes, &c).map(f32::to_bits), expected, "{isa:?}");
            }
        }
    }

    /// A tile of rows with the given scales' magnitude and weights from a seed, in both layouts.
    fn tile(blocks: usize, scale: f32, seed: u64) -> (Vec<u8>, Vec<u8>) {
        let draw = |i: u64| crate::sampling::draw(seed, i);
        let mut rows = Vec::new();
        for i in 0..(TILE_ROWS * blocks) as u64 {
            let sign = if draw(1 << 40 | i) < 0.1 { -1.0 } else { 1.0 };
            let d = f16::from_f32(scale * sign * (0.5 + draw(1 << 41 | i)) as f32);
            rows.extend(d.to_le_bytes());
            rows.extend((0..32).map(|j| (draw(i * 32 + j) * 256.0) as u8));
        }
        let mut tile = vec![0; rows.len()];
        tiles::pack(GgmlType::Q8_0, &rows, &mut tile);
        let mut split = vec![0; rows.len()];
        planes::split(&tile, &mut split);
        (tile, split)
    }

    proptest! {
        #[test]
        fn products_are_those_of_tiles_and_bounds_are_above_them(
            blocks in 1usize..6,
            n in 1usize..4,
            exponent in -20i32..2,
            peak in prop::sample::select(vec![0.0f32, 1.0, 300.0]),
            seed: u64,
        ) {
            let (tile, split) = tile(blocks, 2f32.powi(exponent), seed);
            let matrix = |layout, bytes| Matrix {
                ty: GgmlType::Q8_0,
                rows: TILE_ROWS,
                cols: 32 * blocks,
                layout,
                bytes,
            };
            let (tiled, planes) = (matrix(Layout::Tiles, &tile), matrix(Layout::Planes, &split));
            let mut values: Vec<f32> = (0..(n * 32 * blocks) as u64)
                .map(|i| (crate::sampling::draw(seed ^ 7, i) * 4.0 - 2.0) as f32)
                .collect();
            values[5] = peak;
            let mut x = Activations::default();
            for precision in [Precision::Int8, Precision::Int16] {
                x.set(&values, n, 32 * blocks, precision);
                let slack = Slack::new(&x, precision);
                for isa in Isa::available() {
                    let run = |w: &Matrix<'_>, rows: Range<usize>| {
                        let mut out = vec![0.0; n * rows.len()];
                        matmul(isa, w, rows, &x, 0..n, precision, &mut out);
                        out
                    };
                    let exact = run(&tiled, 0..TILE_ROWS);
                    prop_assert_eq!(&run(&planes, 0..TILE_ROWS), &exact);
                    prop_assert_eq!(run(&planes, 3..9), run(&tiled, 3..9));
                    let mut bounds = vec![0.0; n * TILE_ROWS];
                    let how = (&slack, precision);
                    upper_bounds(isa, &planes, 0, &x, how, &mut bounds);
                    for (bound, exact) in bounds.iter().zip(&exact) {
                        prop_assert!(bound >= exact, "{} below {}", bound, exact);
                    }
                }
            }
        }
    }

    #[test]
    fn the_bound_is_met_where_every_rest_counts_in_full() {
        // All weights 3 or -1 = -4 + 3, and activations of one sign: nothing is given away but the
        // room for rounding.
        let mut rows = Vec::new();
        for _ in 0..TILE_ROWS {
            rows.extend(f16::from_f32(0.5).to_le_bytes());
            rows.extend([3u8, 255].repeat(16));
        }
        let (mut tile, mut split) = (vec![0; rows.len()], vec![0; rows.len()]);
        tiles::pack(GgmlType::Q8_0, &rows, &mut tile);
        planes::split(&tile, &mut split);
        let w = Matrix {
            ty: GgmlType::Q8_0,
            rows: TILE_ROWS,
            cols: 32,
            layout: Layout::Planes,
            bytes: &split,
        };
        let mut x = Activations::default();
        x.set(&[1.27; 32], 1, 32, Precision::Int8);
        let slack = Slack::new(&x, Precision::Int8);
        let (mut exact, mut bound) = ([0.0; 16], [0.0; 16]);
        matmul(
            Isa::SCALAR,
            &w,
            0..16,
            &x,
            0..1,
            Precision::Int8,
            &mut exact,
        );
        let how = (&slack, Precision::Int8);
        upper_bounds(Isa::SCALAR, &w, 0, &x, how, &mut bound);
        assert!(
            bound[0] > exact[0] && bound[0] < exact[0] * 1.001,
            "{bound:?} {exact:?}"
        );
    }
}
