//! MXFP4 tiles whose scales take half a byte each.
//!
//! The scales of a row lie close together: a byte says the least of them, and four bits how far
//! above it each is. Such a tile has three parts: the least scales of the 16 rows; then, block
//! column by block column, eight bytes with the distances of row i (low half) and row i + 8 (high
//! half); then, in the same order, the 256 bytes of weights as in a tile (`formats::tiles`). A tile
//! of 2880 weights a row takes 23,776 bytes so, 24,480 otherwise, and nothing is lost.

use super::blocks::GgmlType;
use super::tiles::{self, TILE_ROWS};

/// Bytes of the least scales.
pub const LEAST: usize = TILE_ROWS;
/// Bytes of a block column's distances.
pub const DISTANCES: usize = TILE_ROWS / 2;
/// Bytes of a block column's weights.
pub const WEIGHTS: usize = 16 * TILE_ROWS;
/// Bytes of a block column of a tile.
const COLUMN: usize = TILE_ROWS + WEIGHTS;
/// The greatest distance.
const MOST: u8 = 15;

/// Bytes of a tile of so many block columns.
pub const fn tile_bytes(columns: usize) -> usize {
    LEAST + columns * (DISTANCES + WEIGHTS)
}

/// Where the weights begin.
pub const fn weights_at(columns: usize) -> usize {
    LEAST + columns * DISTANCES
}

/// Whether 16 rows, one after another as in a file, can be packed and are no larger for it.
///
/// # Panics
/// When they are not 16 whole rows of MXFP4.
pub fn fits(rows: &[u8]) -> bool {
    let row = rows.len() / TILE_ROWS;
    assert!(
        row * TILE_ROWS == rows.len() && row.is_multiple_of(17),
        "{} bytes are no 16 rows of MXFP4",
        rows.len()
    );
    tile_bytes(row / 17) <= rows.len()
        && rows.chunks_exact(row.max(1)).all(|row| {
            let (blocks, _) = row.as_chunks::<17>();
            let scales = blocks.iter().map(|block| block[0]);
            let (least, most) = scales.fold((u8::MAX, 0), |(a, b), e| (a.min(e), b.max(e)));
            most.saturating_sub(least) <= MOST
        })
}

/// Packs a tile whose rows fit ([`fits`]) into [`tile_bytes`].
///
/// # Panics
/// When the lengths are not those, or the scales of a row are too far apart.
pub fn pack(tile: &[u8], packed: &mut [u8]) {
    let (columns, rest) = tile.as_chunks::<COLUMN>();
    assert!(
        rest.is_empty() && packed.len() == tile_bytes(columns.len()),
        "a tile of {} bytes in {}",
        tile.len(),
        packed.len()
    );
    let (head, weights) = packed.split_at_mut(weights_at(columns.len()));
    let (least, distances) = head.split_at_mut(LEAST);
    least.fill(u8::MAX);
    for column in columns {
        for (least, e) in least.iter_mut().zip(column) {
            *least = (*least).min(*e);
        }
    }
    let weights = weights.as_chunks_mut::<WEIGHTS>().0;
    let distances = distances.as_chunks_mut::<DISTANCES>().0;
    for ((column, distances), weights) in columns.iter().zip(distances).zip(weights) {
        let distance = |r: usize| {
            let d = column[r] - least[r];
            assert!(d <= MOST, "scales of row {r} are {d} apart");
            d
        };
        for (i, byte) in distances.iter_mut().enumerate() {
            *byte = distance(i) | distance(i + DISTANCES) << 4;
        }
        weights.copy_from_slice(&column[TILE_ROWS..]);
    }
}

/// All tiles of a matrix, packed one behind the other, then zeros up to the old length; `None`
/// where some rows do not fit.
///
/// # Panics
/// When `rows`, as in a file, are not whole tiles of `columns` blocks of MXFP4.
pub fn pack_rows(rows: &[u8], columns: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; rows.len()];
    let mut tile = vec![0; columns * COLUMN];
    assert!(rows.len().is_multiple_of(tile.len()), "whole tiles");
    for (i, rows) in rows.chunks_exact(tile.len()).enumerate() {
        if !fits(rows) {
            return None;
        }
        tiles::pack(GgmlType::Mxfp4, rows, &mut tile);
        pack(
            &tile,
            &mut out[i * tile_bytes(columns)..][..tile_bytes(columns)],
        );
    }
    Some(out)
}

/// The inverse of [`pack`].
///
/// # Panics
/// When the lengths do not agree.
pub fn unpack(packed: &[u8], tile: &mut [u8]) {
    let (columns, rest) = tile.as_chunks_mut::<COLUMN>();
    assert!(
        rest.is_empty() && packed.len() == tile_bytes(columns.len()),
        "a tile of {} bytes out of {}",
        columns.len() * COLUMN + rest.len(),
        packed.len()
    );
    let (head, weights) = packed.split_at(weights_at(columns.len()));
    let (least, distances) = head.split_at(LEAST);
    let weights = weights.as_chunks::<WEIGHTS>().0;
    let distances = distances.as_chunks::<DISTANCES>().0;
    for ((column, distances), weights) in columns.iter_mut().zip(distances).zip(weights) {
        for (i, byte) in distances.iter().enumerate() {
            // Wrapping: a damaged store may hold anything.
            column[i] = least[i].wrapping_add(byte & 15);
            column[i + DISTANCES] = least[i + DISTANCES].wrapping_add(byte >> 4);
        }
        column[TILE_ROWS..].copy_from_slice(weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_scale_and_the_weights_lie_where_they_are_said_to() {
        let mut tile = vec![0; 3 * COLUMN];
        for column in tile.as_chunks_mut::<COLUMN>().0 {
            column[..TILE_ROWS].fill(100);
        }
        tile[COLUMN + 11] = 115; // row 11, second block column
        tile[2 * COLUMN + TILE_ROWS + 5] = 0x7e;
        let mut packed = vec![0; tile_bytes(3)];
        pack(&tile, &mut packed);
        assert_eq!(packed[..LEAST], [100; 16]);
        assert_eq!(packed[LEAST + DISTANCES + 3], 15 << 4);
        assert_eq!(packed[weights_at(3) + 2 * WEIGHTS + 5], 0x7e);
        let others = packed[LEAST..].iter().filter(|b| **b != 0).count();
        assert_eq!(others, 2);
    }

    #[test]
    fn scales_too_far_apart_do_not_fit() {
        let mut rows = vec![0; TILE_ROWS * 3 * 17];
        assert!(fits(&rows));
        rows[7 * 51 + 17] = 15;
        assert!(fits(&rows));
        rows[7 * 51 + 17] = 16;
        assert!(!fits(&rows));
        // One block a row: the least scales take more than is saved.
        assert!(!fits(&[0; TILE_ROWS * 17]));
        assert!(fits(&[0; TILE_ROWS * 2 * 17]));
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            bytes in prop::collection::vec(any::<u8>(), 4 * TILE_ROWS * 17),
            base in 0..=255 - MOST,
        ) {
            let mut rows = bytes;
            for block in rows.as_chunks_mut::<17>().0 {
                block[0] = base + block[0] % (MOST + 1);
            }
            prop_assert!(fits(&rows));
            let mut tile = vec![0; rows.len()];
            tiles::pack(GgmlType::Mxfp4, &rows, &mut tile);
            let mut packed = vec![0; tile_bytes(4)];
            pack(&tile, &mut packed);
            let mut back = vec![0; tile.len()];
            unpack(&packed, &mut back);
            prop_assert_eq!(back, tile);
        }
    }
}
