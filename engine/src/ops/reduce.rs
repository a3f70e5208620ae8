//! Sums of f32 in one fixed order: element i belongs to lane i mod 16, lanes add their elements
//! in rising order, and a pairwise tree adds the lanes (0 with 8, 1 with 9, ...; then 0 with 4,
//! and so on). Products are rounded before they are added, never fused.

/// Virtual lanes of every reduction.
const LANES: usize = 16;

/// The tree over the lanes.
#[inline]
fn tree(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Dot product of two vectors of the same length.
#[inline]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    debug_assert_eq!(a.len(), b.len());
    let mut lanes = [0.0f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        for i in 0..LANES {
            lanes[i] += x[i] * y[i];
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane += x * y;
    }
    tree(lanes)
}

/// Sum of the squares of a vector's elements.
pub fn sum_of_squares(x: &[f32]) -> f32 {
    dot(x, x)
}

/// Sum of a vector's elements.
pub fn sum(x: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] += block[i];
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += x;
    }
    tree(lanes)
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
