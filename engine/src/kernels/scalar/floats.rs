//! f32 weights (or expanded ones) against f32 activations.
//!
//! 16 virtual lanes: lane j starts at +0 and takes the products with k = j, j + 16, ... in
//! order, each product rounded, then each addition. The lanes then add pairwise: j and j + 8,
//! j and j + 4, j and j + 2, j and j + 1.

use crate::kernels::matmul::FLOAT_ROWS;

const LANES: usize = 16;

/// Dot products of `FLOAT_ROWS` rows of `x.len()` weights, one after another in `rows`.
pub(in crate::kernels) fn dot_rows(rows: &[f32], x: &[f32]) -> [f32; FLOAT_ROWS] {
    std::array::from_fn(|i| dot(&rows[i * x.len()..][..x.len()], x))
}

fn dot(row: &[f32], x: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    for (w, x) in row.chunks(LANES).zip(x.chunks(LANES)) {
        for ((lane, w), x) in lanes.iter_mut().zip(w).zip(x) {
            *lane += w * x;
        }
    }
    tree(lanes)
}

/// The fixed pairwise tree over 16 lanes.
pub(in crate::kernels) fn tree(mut lanes: [f32; LANES]) -> f32 {
    for half in [8, 4, 2, 1] {
        for j in 0..half {
            lanes[j] += lanes[j + half];
        }
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_lanes_then_tree() {
        // 2^24 + 1 rounds to 2^24: where a 1 survives shows the order.
        let mut x = vec![0f32; 17];
        x[0] = 16_777_216.0;
        x[16] = 1.0; // the same lane as x[0]: lost
        assert_eq!(dot(&[1.0; 17], &x), 16_777_216.0);
        x[16] = 0.0;
        x[8] = 1.0; // joins lane 0 first: lost
        x[4] = 1.0; // joins lane 0 next: lost
        assert_eq!(dot(&[1.0; 17], &x), 16_777_216.0);
        x[12] = 1.0; // joins lane 4 before lane 0, and 2 survives
        assert_eq!(dot(&[1.0; 17], &x), 16_777_218.0);
    }
}
