//! Matrices times blocks of tokens, split over the team by strips of rows.

use std::ops::Range;

use crate::kernels::{Activations, Isa, Matrix, Precision, matmul};
use crate::team::{Block, Team};

/// How finely the inputs of a model's matrices are quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precisions {
    /// Of attention and of a feed-forward part without experts.
    pub dense: Precision,
    /// Of the experts.
    pub experts: Precision,
    /// Of the output matrix.
    pub output: Precision,
}

impl Precisions {
    /// The same everywhere.
    pub fn all(precision: Precision) -> Self {
        Self {
            dense: precision,
            experts: precision,
            output: precision,
        }
    }
}

/// What the steps of a forward pass compute with.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// Threads.
    pub team: &'a Team,
    /// Instructions.
    pub isa: Isa,
    /// How activations enter dot products.
    pub precisions: Precisions,
}

/// A weight matrix `[rows, cols]` with an optional bias of `rows` values.
#[derive(Clone, Copy, Debug)]
pub struct Linear<'a> {
    /// Weights.
    pub weight: Matrix<'a>,
    /// Added to the product.
    pub bias: Option<&'a [f32]>,
}

/// Multiplications below which waking the other threads costs more than it brings.
const SMALL: usize = 1 << 15;

impl Tools<'_> {
    /// Rows a piece, for `rows` outputs that cost `cols` multiplications for each of `n` tokens:
    /// a few pieces a thread, and whole tiles of 16 rows.
    pub(super) fn strip(&self, rows: usize, cols: usize, n: usize) -> usize {
        if rows * cols * n <= SMALL {
            return rows.max(1);
        }
        let pieces = self.team.threads() * 4;
        rows.div_ceil(pieces).next_multiple_of(16).clamp(16, 256)
    }
}

/// `out[t] = w x[t] + bias` for each token of `x`; `out` becomes `[n, rows]`.
pub fn linear(
    tools: Tools<'_>,
    w: &Linear<'_>,
    x: &Activations,
    precision: Precision,
    out: &mut Vec<f32>,
) {
    let (n, rows) = (x.n, w.weight.rows);
    out.clear();
    out.resize(n * rows, 0.0);
    if n == 0 {
        return;
    }
    let strip = tools.strip(rows, w.weight.cols, n);
    tools
        .team
        .for_blocks(out, rows, &[0, n], strip, |_, mut block| {
            product(tools.isa, w, block.cols(), x, precision, &mut block);
        });
}

/// Rows `rows` of `w` times the tokens of a block of outputs, `x[t]` for its row t.
pub(super) fn product(
    isa: Isa,
    w: &Linear<'_>,
    rows: Range<usize>,
    x: &Activations,
    precision: Precision,
    block: &mut Block<'_, f32>,
) {
    let tokens = block.rows();
    let run = |y: &mut [f32]| {
        let tokens = tokens.clone();
        matmul(isa, &w.weight, rows.clone(), x, tokens, precision, y);
        if let Some(bias) = w.bias {
            add_bias(y, &bias[rows.clone()]);
        }
    };
    if let Some(y) = block.contiguous() {
        return run(y);
    }
    let mut y = vec![0.0; tokens.len() * rows.len()];
    run(&mut y);
    for (i, row) in y.chunks_exact(rows.len()).enumerate() {
        block.row(i).copy_from_slice(row);
    }
}

/// Adds `bias` to each row of `y`.
pub fn add_bias(y: &mut [f32], bias: &[f32]) {
    for row in y.chunks_exact_mut(bias.len()) {
        for (v, b) in row.iter_mut().zip(bias) {
            *v += b;
        }
    }
}

/// The rows of `table` for `tokens`, as f32 `[tokens, cols]`. Ids must lie below `table.rows`.
pub fn embed(table: &Matrix<'_>, tokens: &[u32], out: &mut Vec<f32>) {
    out.clear();
    out.resize(tokens.len() * table.cols, 0.0);
    for (&token, row) in tokens.iter().zip(out.chunks_exact_mut(table.cols)) {
        table
            .ty
            .dequantize_row(&table.read_row(token as usize), row);
    }
}

/// Adds `y` to `x`: a residual connection.
pub fn add_to(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}
