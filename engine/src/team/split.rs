//! Disjoint parts of one buffer, one part a piece.

use std::marker::PhantomData;
use std::ops::Range;

use super::Team;

/// A piece's own part of a row-major matrix: some rows, and a strip of columns of each.
pub struct Block<'a, T> {
    base: *mut T,
    width: usize,
    rows: Range<usize>,
    cols: Range<usize>,
    owner: PhantomData<&'a mut [T]>,
}

impl<T> Block<'_, T> {
    /// Rows of the matrix that this block covers.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Columns of the matrix that this block covers.
    pub fn cols(&self) -> Range<usize> {
        self.cols.clone()
    }

    /// The strip of the block's `i`-th row (counted from the block's first).
    pub fn row(&mut self, i: usize) -> &mut [T] {
        assert!(
            i < self.rows.len(),
            "row {i} of a block of {} rows",
            self.rows.len()
        );
        let start = (self.rows.start + i) * self.width + self.cols.start;
        // SAFETY: `Team::for_blocks` checked that the matrix holds all its rows and that columns
        // end within the width, and gave this block to one piece only; `&mut self` keeps the
        // returned strip the only one alive.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(start), self.cols.len()) }
    }

    /// All rows of the block as one slice, when it is contiguous: it has one row, or whole rows.
    pub fn contiguous(&mut self) -> Option<&mut [T]> {
        if self.rows.len() == 1 {
            return Some(self.row(0));
        }
        if self.cols.len() != self.width {
            return None;
        }
        let len = self.rows.len() * self.width;
        // SAFETY: as in `row`; whole rows follow each other without a gap.
        Some(unsafe {
            std::slice::from_raw_parts_mut(self.base.add(self.rows.start * self.width), len)
        })
    }
}

/// A pointer that may go to the workers, because each derives a different part from it.
struct Base<T>(*mut T);
// SAFETY: the parts are disjoint (see the users below) and T may be sent to another thread.
unsafe impl<T: Send> Sync for Base<T> {}

impl Team {
    /// Cuts `data` into chunks of `chunk` elements (the last may be shorter) and runs
    /// `job(index, chunk)` for each.
    pub fn for_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        job: impl Fn(usize, &mut [T]) + Sync,
    ) {
        assert!(chunk > 0, "chunks of no elements");
        let len = data.len();
        let base = Base(data.as_mut_ptr());
        self.run(len.div_ceil(chunk), &|i| {
            let start = i * chunk;
            let base = &base;
            // SAFETY: piece i runs once, chunks of different pieces do not overlap, all lie
            // within `data`, and `data` stays borrowed until `run` returns.
            let part = unsafe {
                std::slice::from_raw_parts_mut(base.0.add(start), chunk.min(len - start))
            };
            job(i, part);
        });
    }

    /// Cuts a row-major matrix of `width` columns into groups of rows (`bounds[g]..bounds[g + 1]`)
    /// and each group into strips of `strip` columns (the last may be narrower), and runs
    /// `job(group, block)` for each. Empty groups are skipped.
    pub fn for_blocks<T: Send>(
        &self,
        data: &mut [T],
        width: usize,
        bounds: &[usize],
        strip: usize,
        job: impl Fn(usize, Block<'_, T>) + Sync,
    ) {
        assert!(strip > 0 && width > 0, "strips of no columns");
        assert!(bounds.is_sorted(), "groups of rows must not overlap");
        let rows = bounds.last().copied().unwrap_or(0);
        assert!(
            rows * width <= data.len(),
            "a group reaches past the matrix"
        );
        let strips = width.div_ceil(strip);
        let groups: Vec<usize> = (1..bounds.len())
            .filter(|&g| bounds[g] > bounds[g - 1])
            .map(|g| g - 1)
            .collect();
        let base = Base(data.as_mut_ptr());
        self.run(groups.len() * strips, &|i| {
            let base = &base;
            let group = groups[i / strips];
            let start = i % strips * strip;
            job(
                group,
                Block {
                    base: base.0,
                    width,
                    rows: bounds[group]..bounds[group + 1],
                    cols: start..(start + strip).min(width),
                    owner: PhantomData,
                },
            );
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_everything_once() {
        let team = Team::new(3);
        let mut data = vec![0usize; 103];
        team.for_chunks(&mut data, 10, |i, part| {
            for x in part {
                *x += i + 1;
            }
        });
        assert!(data.iter().enumerate().all(|(i, &x)| x == i / 10 + 1));
    }

    #[test]
    fn blocks_cover_everything_once() {
        let team = Team::new(3);
        let (width, bounds) = (11, [0, 3, 3, 4, 9]);
        let mut data = vec![0usize; 9 * width];
        team.for_blocks(&mut data, width, &bounds, 4, |group, mut block| {
            let cols = block.cols();
            for i in 0..block.rows().len() {
                for (c, x) in cols.clone().zip(block.row(i)) {
                    *x += 100 * group + c + 1;
                }
            }
        });
        for (i, &x) in data.iter().enumerate() {
            let group = [0, 0, 0, 2, 3, 3, 3, 3, 3][i / width];
            assert_eq!(x, 100 * group + i % width + 1);
        }
    }

    #[test]
    fn one_row_or_whole_rows_are_contiguous() {
        let team = Team::new(1);
        let mut data = vec![0u8; 12];
        team.for_blocks(&mut data, 4, &[0, 1, 3], 4, |_, mut block| {
            let rows = block.rows().len();
            assert_eq!(block.contiguous().unwrap().len(), rows * 4);
        });
        team.for_blocks(&mut data, 4, &[0, 3], 2, |_, mut block| {
            assert!(block.contiguous().is_none());
        });
    }

    #[test]
    #[should_panic(expected = "reaches past the matrix")]
    fn a_matrix_too_small_is_refused() {
        Team::new(1).for_blocks(&mut [0u8; 7], 4, &[0, 2], 4, |_, _| {});
    }
}
