//! Quantised rows sixteen at a time, so that one load feeds a lane a row.
//!
//! A tile holds 16 consecutive rows, block column by block column. Within one block column each
//! field of the block (a scale, or four bytes of weights) is stored for all 16 rows before the
//! next field: the field at byte `at` of a block lies at `16 * at` of the column, row r's share
//! `r * size` behind. So a tile has exactly the bytes of its rows, and packing is a permutation.

use std::ops::Range;

use super::blocks::GgmlType;

/// Rows of a tile.
pub const TILE_ROWS: usize = 16;

/// Bytes of weights that one field holds.
const GROUP: usize = 4;

/// Whether a matrix of this type, `rows` rows to an expert, is stored in tiles.
pub fn is_tiled(ty: GgmlType, rows: usize) -> bool {
    !ty.is_float() && rows > 0 && rows.is_multiple_of(TILE_ROWS)
}

/// Size of a block's scales, and the bytes of the block that hold them.
const fn scales(ty: GgmlType) -> (usize, Range<usize>) {
    match ty {
        GgmlType::Mxfp4 => (1, 0..1),
        GgmlType::Q8_0 | GgmlType::Q4_0 => (2, 0..2),
        // In Q4_K and Q5_K, twelve bytes of smaller scales follow as groups.
        GgmlType::Q4_1 | GgmlType::Q4K | GgmlType::Q5K => (2, 0..4),
        GgmlType::Q6K => (2, 208..210),
        GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 => (1, 0..0),
    }
}

/// Each field of a block as (offset, size).
fn fields(ty: GgmlType) -> impl Iterator<Item = (usize, usize)> + Clone {
    let (size, scales) = scales(ty);
    let groups = |bytes: Range<usize>| bytes.step_by(GROUP).map(|at| (at, GROUP));
    groups(0..scales.start)
        .chain(scales.clone().step_by(size).map(move |at| (at, size)))
        .chain(groups(scales.end..ty.block_bytes()))
}

/// Bytes of the scales at the start of a block column.
pub const fn column_header(ty: GgmlType) -> usize {
    let (_, scales) = scales(ty);
    if scales.start == 0 {
        TILE_ROWS * scales.end
    } else {
        0
    }
}

/// Packs 16 rows, one after another in `rows`, into the tile `out` of the same length.
///
/// # Panics
/// When the lengths differ or are not 16 whole rows.
pub fn pack(ty: GgmlType, rows: &[u8], out: &mut [u8]) {
    walk(ty, rows.len(), out.len(), |plain, tiled, size| {
        out[tiled..tiled + size].copy_from_slice(&rows[plain..plain + size]);
    });
}

/// The inverse of [`pack`].
///
/// # Panics
/// As [`pack`].
pub fn unpack(ty: GgmlType, tile: &[u8], rows: &mut [u8]) {
    walk(ty, rows.len(), tile.len(), |plain, tiled, size| {
        rows[plain..plain + size].copy_from_slice(&tile[tiled..tiled + size]);
    });
}

fn walk(ty: GgmlType, plain: usize, tiled: usize, mut copy: impl FnMut(usize, usize, usize)) {
    let (row, block) = (plain / TILE_ROWS, ty.block_bytes());
    assert!(
        plain == tiled && row * TILE_ROWS == plain && row.is_multiple_of(block),
        "16 rows of {} in {plain} bytes, a tile in {tiled}",
        ty.name()
    );
    for b in 0..row / block {
        for (at, size) in fields(ty) {
            let column = TILE_ROWS * (b * block + at);
            for r in 0..TILE_ROWS {
                copy(r * row + b * block + at, column + r * size, size);
            }
        }
    }
}

/// Copies row `r` of a tile into `out`.
///
/// # Panics
/// When `r` is not below 16 or `out` is not a row of the tile.
pub fn read_row(ty: GgmlType, tile: &[u8], r: usize, out: &mut [u8]) {
    assert!(
        r < TILE_ROWS && tile.len() == TILE_ROWS * out.len(),
        "row {r} of a tile"
    );
    let block = ty.block_bytes();
    for (b, out) in out.chunks_exact_mut(block).enumerate() {
        for (at, size) in fields(ty) {
            let from = TILE_ROWS * (b * block + at) + r * size;
            out[at..at + size].copy_from_slice(&tile[from..from + size]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_field_lies_where_it_is_said_to() {
        let ty = GgmlType::Q4_1;
        let mut rows = vec![0u8; TILE_ROWS * 40]; // two blocks a row
        let mut tile = rows.clone();
        // Row 3, second block: the minimum, and the third group of nibbles.
        rows[3 * 40 + 20 + 2] = 1;
        rows[3 * 40 + 20 + 4 + 8] = 2;
        pack(ty, &rows, &mut tile);
        assert_eq!(tile[16 * (20 + 2) + 3 * 2], 1);
        assert_eq!(tile[16 * 20 + column_header(ty) + 2 * 64 + 3 * 4], 2);
        assert_eq!(tile.iter().filter(|b| **b != 0).count(), 2);
        // Q6_K has its scale behind the rest.
        let mut rows = vec![0u8; TILE_ROWS * 210];
        let mut tile = rows.clone();
        rows[3 * 210 + 209] = 1;
        rows[3 * 210 + 200] = 2;
        pack(GgmlType::Q6K, &rows, &mut tile);
        assert_eq!(tile[16 * 208 + 3 * 2 + 1], 1);
        assert_eq!(tile[16 * 200 + 3 * 4], 2);
    }

    proptest! {
        #[test]
        fn packing_is_a_permutation(
            ty in prop::sample::select(vec![
                GgmlType::Mxfp4, GgmlType::Q8_0, GgmlType::Q4_0, GgmlType::Q4_1,
                GgmlType::Q4K, GgmlType::Q5K, GgmlType::Q6K,
            ]),
            blocks in 1usize..4,
            seed: u64,
        ) {
            let row = blocks * ty.block_bytes();
            let rows: Vec<u8> = (0..TILE_ROWS * row)
                .map(|i| (seed.wrapping_mul(2 * i as u64 + 1) >> 32) as u8)
                .collect();
            let mut tile = vec![0; rows.len()];
            pack(ty, &rows, &mut tile);
            let mut back = vec![0; rows.len()];
            unpack(ty, &tile, &mut back);
            prop_assert_eq!(&back, &rows);
            for r in 0..TILE_ROWS {
                let mut out = vec![0; row];
                read_row(ty, &tile, r, &mut out);
                prop_assert_eq!(&out[..], &rows[r * row..][..row]);
            }
        }
    }
}
