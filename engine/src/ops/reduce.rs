//! Sums of f32 in one fixed order: element i belongs to lane i mod 16, lanes add their elements
//! in rising order, and a pairwise tree adds the lanes (0 with 8, 1 with 9, ...; then 0 with 4,
//! and so on). Products are rounded before they are added, never fused.

use crate::kernels::{LANES, Lanes};

/// Adds the terms behind the last whole block to their lanes, then the lanes by the tree.
#[inline]
fn finish(lanes: Lanes, rest: impl ExactSizeIterator<Item = f32>) -> f32 {
    if rest.len() == 0 {
        return lanes.tree();
    }
    let mut sums = lanes.array();
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += x;
    }
    Lanes::load(&sums).tree()
}

/// Dot product of two vectors of the same length.
#[inline]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    debug_assert_eq!(a.len(), b.len());
    let mut lanes = Lanes::zero();
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        lanes.add_products(x, y);
    }
    finish(lanes, a_rest.iter().zip(b_rest).map(|(x, y)| x * y))
}

/// Sum of the squares of a vector's elements.
pub fn sum_of_squares(x: &[f32]) -> f32 {
    dot(x, x)
}

/// Sum of a vector's elements.
pub fn sum(x: &[f32]) -> f32 {
    let mut lanes = Lanes::zero();
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        lanes.add(block);
    }
    finish(lanes, rest.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, spelled out.
    fn by_definition(terms: impl Iterator<Item = f32>) -> f32 {
        let mut lanes = [0.0f32; 16];
        for (i, t) in terms.enumerate() {
            lanes[i % 16] += t;
        }
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
        }
        lanes[0]
    }

    #[test]
    fn the_order_is_the_documented_one() {
        for n in [0, 1, 15, 16, 17, 64, 100] {
            let a: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
            let b: Vec<f32> = (0..n).map(|i| (i as f32 * 0.73).cos()).collect();
            let expected = by_definition(a.iter().zip(&b).map(|(x, y)| x * y));
            assert_eq!(dot(&a, &b).to_bits(), expected.to_bits());
            assert_eq!(
                sum(&a).to_bits(),
                by_definition(a.iter().copied()).to_bits()
            );
            assert_eq!(
                sum_of_squares(&a).to_bits(),
                by_definition(a.iter().map(|x| x * x)).to_bits()
            );
        }
    }
}
