//! The products and the softmax of attention.

use half::slice::HalfFloatSliceExt;

use crate::kernels::LANES;
use crate::kernels::attention::{Panels, Product};
use crate::kernels::elementary::exp;
use crate::kernels::softmax::{KEY_BLOCK, Tally};

/// See [`crate::kernels::products`].
pub(in crate::kernels) fn products(
    product: &Product<'_>,
    factors: Option<&[f32]>,
    out: &mut [f32],
    out_len: usize,
) {
    let Product { depth, steps, .. } = product;
    let mut wide = vec![0.0f32; steps.len() * LANES];
    for p in product.taken.clone() {
        let from = (p * depth + steps.start) * LANES;
        let these = from..from + wide.len();
        match product.panels {
            Panels::F32(x) => wide.copy_from_slice(&x[these]),
            Panels::F16(x) => x[these].convert_to_f32_slice(&mut wide),
        }
        let rows = product.rows.chunks_exact(product.row_len);
        for (r, (row, out)) in rows.zip(out.chunks_exact_mut(out_len)).enumerate() {
            let mut sums = [0.0f32; LANES];
            for (x, lanes) in row[steps.clone()].iter().zip(wide.as_chunks::<LANES>().0) {
                for (sum, y) in sums.iter_mut().zip(lanes) {
                    *sum += x * y;
                }
            }
            for (out, sum) in out[p * LANES..].iter_mut().zip(sums) {
                *out = match factors {
                    None => sum,
                    Some(factors) => *out * factors[r] + sum,
                };
            }
        }
    }
}

/// See [`crate::kernels::soften`].
pub(in crate::kernels) fn soften(scores: &mut [[f32; KEY_BLOCK]], tallies: &mut [Tally]) {
    for (scores, tally) in scores.iter_mut().zip(tallies) {
        if !tally.begin(scores) {
            continue;
        }
        let (groups, _) = scores.as_chunks_mut::<LANES>();
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for group in &*groups {
            for (max, &s) in lanes.iter_mut().zip(group) {
                *max = if s > *max { s } else { *max };
            }
        }
        tally.rise(tree(lanes, |a, b| if b > a { b } else { a }));
        let mut sums = [0.0; LANES];
        for group in groups {
            for (sum, s) in sums.iter_mut().zip(group) {
                *s = exp(*s - tally.max);
                *sum += *s;
            }
        }
        tally.count(tree(sums, |a, b| a + b));
    }
}

fn tree(mut lanes: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] = join(lanes[i], lanes[i + half]);
        }
    }
    lanes[0]
}
