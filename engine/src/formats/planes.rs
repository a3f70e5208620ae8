//! Q8_0 tiles with the two lowest bits of every weight apart.
//!
//! Such a tile has two parts, each block column by block column. The high part holds the 16 scales,
//! then the weights' upper four bits, two weights a byte, and the two bits below them, four weights
//! a byte: 416 bytes. The low part holds the lowest two bits: 128 bytes. Together they are the 544
//! bytes of a tile's block column (`formats::tiles`), so splitting is a permutation of bits. With
//! the high part alone each weight is known to lie within 0 to 3 above w & !3.

use super::tiles::TILE_ROWS;

/// Bytes of scales in a block column.
pub const SCALES: usize = 2 * TILE_ROWS;
/// Bytes of a group: four weights of each row.
pub const GROUP: usize = 4 * TILE_ROWS;
/// Groups of a block column.
const GROUPS: usize = 8;
/// Bytes of a block column of a tile.
const COLUMN: usize = SCALES + GROUPS * GROUP;
/// Bytes of a block column in the high part.
pub const HIGH: usize = SCALES + 6 * GROUP;
/// Bytes of a block column in the low part.
pub const LOW: usize = 2 * GROUP;

const _: () = assert!(HIGH + LOW == COLUMN);

/// Block columns of a tile of so many bytes.
fn columns(bytes: usize) -> usize {
    assert!(
        bytes.is_multiple_of(COLUMN),
        "{bytes} bytes are no Q8_0 tile"
    );
    bytes / COLUMN
}

/// Splits a tile.
///
/// # Panics
/// When the lengths differ or are not those of a Q8_0 tile.
pub fn split(tile: &[u8], planes: &mut [u8]) {
    assert_eq!(tile.len(), planes.len(), "a tile and its planes");
    let (high, low) = planes.split_at_mut(columns(tile.len()) * HIGH);
    let parts = high.chunks_exact_mut(HIGH).zip(low.chunks_exact_mut(LOW));
    for (column, (high, low)) in tile.chunks_exact(COLUMN).zip(parts) {
        high[..SCALES].copy_from_slice(&column[..SCALES]);
        let groups = column[SCALES..].as_chunks::<GROUP>().0;
        let high = high[SCALES..].as_chunks_mut::<GROUP>().0;
        let low = low.as_chunks_mut::<GROUP>().0;
        for k in 0..GROUP {
            let w: [u8; GROUPS] = std::array::from_fn(|g| groups[g][k]);
            for g in 0..4 {
                high[g][k] = w[g] >> 4 | w[g + 4] & 0xf0;
            }
            for h in 0..2 {
                let four = |shift: u32| {
                    (0..4).fold(0, |byte, s| byte | (w[4 * h + s] >> shift & 3) << (2 * s))
                };
                high[4 + h][k] = four(2);
                low[h][k] = four(0);
            }
        }
    }
}

/// The inverse of [`split`].
///
/// # Panics
/// As [`split`].
pub fn join(planes: &[u8], tile: &mut [u8]) {
    assert_eq!(tile.len(), planes.len(), "a tile and its planes");
    let (high, low) = planes.split_at(columns(tile.len()) * HIGH);
    let parts = high.chunks_exact(HIGH).zip(low.chunks_exact(LOW));
    for (column, (high, low)) in tile.chunks_exact_mut(COLUMN).zip(parts) {
        put_high(high, column);
        let groups = column[SCALES..].as_chunks_mut::<GROUP>().0;
        let low = low.as_chunks::<GROUP>().0;
        for (g, group) in groups.iter_mut().enumerate() {
            for (w, low) in group.iter_mut().zip(&low[g / 4]) {
                *w |= low >> (2 * (g % 4)) & 3;
            }
        }
    }
}

/// The tile with every weight's two lowest bits 0; only the high part of `planes` is read.
///
/// # Panics
/// As [`split`].
pub fn join_high(planes: &[u8], tile: &mut [u8]) {
    assert_eq!(tile.len(), planes.len(), "a tile and its planes");
    for (column, high) in tile.chunks_exact_mut(COLUMN).zip(planes.chunks_exact(HIGH)) {
        put_high(high, column);
    }
}

fn put_high(high: &[u8], column: &mut [u8]) {
    column[..SCALES].copy_from_slice(&high[..SCALES]);
    let groups = column[SCALES..].as_chunks_mut::<GROUP>().0;
    let high = high[SCALES..].as_chunks::<GROUP>().0;
    for (g, group) in groups.iter_mut().enumerate() {
        let (upper, middle) = (&high[g % 4], &high[4 + g / 4]);
        let s = 2 * (g % 4);
        for ((w, upper), middle) in group.iter_mut().zip(upper).zip(middle) {
            let upper = if g < 4 { upper << 4 } else { upper & 0xf0 };
            *w = upper | (middle >> s & 3) << 2;
        }
    }
}

/// The scales of each block column, 16 rows each, as f16 bits.
pub fn scales(planes: &[u8]) -> impl Iterator<Item = [u16; TILE_ROWS]> + '_ {
    let high = &planes[..columns(planes.len()) * HIGH];
    high.chunks_exact(HIGH).map(|column| {
        let scales = column[..SCALES].as_chunks::<2>().0;
        std::array::from_fn(|r| u16::from_le_bytes(scales[r]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn splitting_is_a_permutation_of_bits(columns in 1usize..4, seed: u64) {
            let tile: Vec<u8> = (0..columns * COLUMN)
                .map(|i| (seed.wrapping_mul(2 * i as u64 + 1) >> 32) as u8)
                .collect();
            let mut planes = vec![0; tile.len()];
            split(&tile, &mut planes);
            let ones = |bytes: &[u8]| bytes.iter().map(|b| b.count_ones()).sum::<u32>();
            prop_assert_eq!(ones(&tile), ones(&planes));
            let mut back = vec![0; tile.len()];
            join(&planes, &mut back);
            prop_assert_eq!(&back, &tile);
            // The low part does not matter to the high one.
            planes[columns * HIGH..].fill(0xa5);
            join_high(&planes, &mut back);
            for (i, (high, w)) in back.iter().zip(&tile).enumerate() {
                let is_scale = i % COLUMN < SCALES;
                prop_assert_eq!(*high, if is_scale { *w } else { w & !3 });
            }
            let first = scales(&planes).next().unwrap();
            prop_assert_eq!(first[1], u16::from_le_bytes([tile[2], tile[3]]));
            prop_assert_eq!(scales(&planes).count(), columns);
        }
    }
}
