//! The best rows of a large matrix, without computing most of the others.
//!
//! Every row gets an upper bound of its product from the high part of its weights alone
//! (`kernels::planes`), and a tile the highest of its rows'. The k tiles with each token's highest
//! bounds are computed in full; the k-th best of these products is a threshold that the k-th best
//! of all products cannot be below. Then every tile whose bound reaches the threshold is computed. What is left out is below the
//! threshold, so the k best rows and their products are those of the whole matrix, ties included.

use super::linear::Tools;
use crate::formats::tiles::TILE_ROWS;
use crate::kernels::{Activations, Matrix, Precision, Slack, matmul, upper_bounds};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Products that were asked for: rows times tokens.
    pub screened: usize,
    /// Of these, computed.
    pub computed: usize,
}

/// Products of `w`, which must be in planes, with each token of `x`: of token t at least the
/// `best[t]` highest. The others may be negative infinity instead. `out` becomes `[n, rows]`.
pub fn best_rows(
    tools: Tools<'_>,
    w: &Matrix<'_>,
    x: &Activations,
    precision: Precision,
    best: &[usize],
    out: &mut Vec<f32>,
) -> Kept {
    let (n, rows) = (x.n, w.rows);
    let tiles = rows / TILE_ROWS;
    let bounds = bounds(tools, w, x, precision);
    let mut first = vec![false; tiles];
    for (bounds, &k) in bounds.chunks_exact(tiles).zip(best) {
        for tile in highest(bounds, k) {
            first[tile] = true;
        }
    }
    let first: Vec<usize> = (0..tiles).filter(|tile| first[*tile]).collect();
    let products = compute(tools, w, x, precision, &first);
    let thresholds: Vec<f32> = (0..n)
        .map(|t| {
            let own = products.chunks_exact(n * TILE_ROWS);
            let own = own.flat_map(|tile| &tile[t * TILE_ROWS..][..TILE_ROWS]);
            kth(own.copied().collect(), best[t])
        })
        .collect();
    let reaches = |tile: usize| {
        let mut own = bounds.chunks_exact(tiles).zip(&thresholds);
        own.any(|(bounds, threshold)| !is_below(bounds[tile], *threshold))
    };
    let mut rest: Vec<usize> = (0..tiles).filter(|tile| reaches(*tile)).collect();
    rest.retain(|tile| first.binary_search(tile).is_err());
    let more = compute(tools, w, x, precision, &rest);
    out.clear();
    out.resize(n * rows, f32::NEG_INFINITY);
    for (list, products) in [(&first, &products), (&rest, &more)] {
        for (tile, products) in list.iter().zip(products.chunks_exact(n * TILE_ROWS)) {
            for (t, products) in products.chunks_exact(TILE_ROWS).enumerate() {
                let at = t * rows + tile * TILE_ROWS;
                out[at..at + TILE_ROWS].copy_from_slice(products);
            }
        }
    }
    Kept {
        screened: n * rows,
        computed: n * TILE_ROWS * (first.len() + rest.len()),
    }
}

/// Whether nothing under `bound` can reach `threshold`. NaN is below nothing: the caller must see it.
fn is_below(bound: f32, threshold: f32) -> bool {
    bound < threshold
}

/// The highest bound of each tile's rows, `[n, tiles]`; infinity where one is NaN.
fn bounds(tools: Tools<'_>, w: &Matrix<'_>, x: &Activations, precision: Precision) -> Vec<f32> {
    let (n, tiles) = (x.n, w.rows / TILE_ROWS);
    let slack = Slack::new(x, precision);
    let mut bounds = vec![0.0; n * tiles];
    let strip = tools.strip(w.rows, w.cols, n).div_ceil(TILE_ROWS);
    tools
        .team
        .for_blocks(&mut bounds, tiles, &[0, n], strip, |_, mut block| {
            let cols = block.cols();
            let mut part = vec![0.0; n * TILE_ROWS];
            for tile in cols.clone() {
                let how = (&slack, precision);
                upper_bounds(tools.isa, w, tile, x, how, &mut part);
                for (t, part) in part.chunks_exact(TILE_ROWS).enumerate() {
                    block.row(t)[tile - cols.start] = highest_of(part);
                }
            }
        });
    bounds
}

/// Infinity with a NaN among them.
fn highest_of(bounds: &[f32]) -> f32 {
    if bounds.iter().any(|bound| bound.is_nan()) {
        return f32::INFINITY;
    }
    bounds.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// `[tiles, n, 16]`.
fn compute(
    tools: Tools<'_>,
    w: &Matrix<'_>,
    x: &Activations,
    precision: Precision,
    tiles: &[usize],
) -> Vec<f32> {
    let mut products = vec![0.0; tiles.len() * x.n * TILE_ROWS];
    tools
        .team
        .for_chunks(&mut products, x.n * TILE_ROWS, |i, out| {
            let rows = tiles[i] * TILE_ROWS..(tiles[i] + 1) * TILE_ROWS;
            matmul(tools.isa, w, rows, x, 0..x.n, precision, out);
        });
    products
}

/// The `k` tiles with the highest bounds, in no order.
fn highest(bounds: &[f32], k: usize) -> Vec<usize> {
    let mut tiles: Vec<usize> = (0..bounds.len()).collect();
    if k < tiles.len() {
        tiles.select_nth_unstable_by(k, |a, b| bounds[*b].total_cmp(&bounds[*a]));
        tiles.truncate(k);
    }
    tiles
}

/// The k-th highest; with a NaN among the k highest, it is one.
fn kth(mut products: Vec<f32>, k: usize) -> f32 {
    match k.min(products.len()).checked_sub(1) {
        None => f32::INFINITY,
        Some(at) => *products.select_nth_unstable_by(at, |a, b| b.total_cmp(a)).1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blocks::GgmlType;
    use crate::formats::{planes, tiles};
    use crate::kernels::{Isa, Layout};
    use crate::ops::{Linear, Precisions, linear};
    use crate::sampling::draw;
    use crate::team::Team;

    const ROWS: usize = 512;
    const COLS: usize = 256;

    /// `ROWS` rows in tiles, and in planes: random ones, and some that are alike.
    fn matrices() -> (Vec<u8>, Vec<u8>) {
        let row_bytes = COLS / 32 * 34;
        let mut rows = Vec::new();
        for r in 0..ROWS as u64 {
            // Rows 7, 107, 207 ... are the same, so there are ties.
            let seed = if r % 100 == 7 { 7 } else { r };
            for b in 0..(COLS / 32) as u64 {
                rows.extend(half::f16::from_f32(0.01 + 0.001 * (seed % 5) as f32).to_le_bytes());
                rows.extend((0..32).map(|j| (draw(seed, b * 32 + j) * 255.0) as u8));
            }
        }
        let (mut tiled, mut split) = (vec![0; rows.len()], vec![0; rows.len()]);
        let len = TILE_ROWS * row_bytes;
        for (i, rows) in rows.chunks_exact(len).enumerate() {
            let at = i * len..(i + 1) * len;
            tiles::pack(GgmlType::Q8_0, rows, &mut tiled[at.clone()]);
            planes::split(&tiled[at.clone()], &mut split[at]);
        }
        (tiled, split)
    }

    #[test]
    fn the_best_rows_are_those_of_the_whole_product() {
        let (tiled, split) = matrices();
        let matrix = |layout, bytes| Matrix {
            ty: GgmlType::Q8_0,
            rows: ROWS,
            cols: COLS,
            layout,
            bytes,
        };
        let (tiled, split) = (
            matrix(Layout::Tiles, &tiled),
            matrix(Layout::Planes, &split),
        );
        let team = Team::new(2);
        let n = 3;
        let mut left_out = 0;
        for (seed, precision, isa) in [
            (1, Precision::Int8, Isa::SCALAR),
            (2, Precision::Int16, Isa::detect()),
            (3, Precision::Int16, Isa::detect()),
        ] {
            let values: Vec<f32> = (0..(n * COLS) as u64)
                .map(|i| (draw(seed, i) - 0.5) as f32)
                .collect();
            let mut x = Activations::default();
            x.set(&values, n, COLS, precision);
            let tools = Tools {
                team: &team,
                isa,
                precisions: Precisions::all(precision),
            };
            let (mut all, mut some) = (Vec::new(), Vec::new());
            let weight = Linear {
                weight: tiled,
                bias: None,
            };
            linear(tools, &weight, &x, precision, &mut all);
            for best in [[1, 1, 1], [1, 5, 40], [ROWS, 1, 2], [0, 0, 0]] {
                let kept = best_rows(tools, &split, &x, precision, &best, &mut some);
                let computed = some.iter().filter(|v| v.is_finite()).count();
                assert_eq!((kept.screened, kept.computed), (n * ROWS, computed));
                left_out += kept.screened - kept.computed;
                for (t, k) in best.into_iter().enumerate() {
                    let (all, some) = (&all[t * ROWS..][..ROWS], &some[t * ROWS..][..ROWS]);
                    let least = if k == 0 {
                        f32::INFINITY
                    } else {
                        kth(all.to_vec(), k)
                    };
                    for (all, some) in all.iter().zip(some) {
                        if some.is_finite() {
                            assert_eq!(all, some);
                        } else {
                            assert!(*all < least, "{all} left out, {k}-th is {least}");
                        }
                    }
                }
            }
        }
        assert!(left_out > 1000, "{left_out}: the screen does something");
    }

    #[test]
    fn what_is_no_number_is_not_hidden() {
        assert!(kth(vec![1.0, f32::NAN, 2.0], 1).is_nan());
        assert_eq!(kth(vec![1.0, 3.0, 2.0], 2), 2.0);
        assert_eq!(kth(vec![], 2), f32::INFINITY);
        assert_eq!(highest_of(&[0.0, 3.0, 1.0]), 3.0);
        assert_eq!(highest_of(&[0.0, f32::NAN, 1.0]), f32::INFINITY);
        assert!(!is_below(f32::INFINITY, f32::NAN) && !is_below(1.0, f32::NAN));
        let mut highest = highest(&[0.0, f32::INFINITY, 2.0, 1.0], 2);
        highest.sort_unstable();
        assert_eq!(highest, [1, 2]);
    }
}
