//! A mixture of experts: tokens grouped by expert, outputs added in the router's rank order.

use super::activation::{clamped_swiglu, swiglu};
use super::finite::{NonFinite, check_finite};
use super::linear::{Linear, Tools, add_bias, product};
use super::quantize::quantize;
use super::router::Choice;
use crate::kernels::{Activations, Matrix, Precision, matmul};

/// The unit between an expert's matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertActivation {
    /// gpt-oss's clamped SwiGLU.
    Clamped,
    /// SwiGLU.
    Silu,
}

impl ExpertActivation {
    fn apply(self, gate: &mut [f32], up: &[f32]) {
        match self {
            Self::Clamped => clamped_swiglu(gate, up),
            Self::Silu => swiglu(gate, up),
        }
    }
}

/// The experts of a layer, stacked: expert e owns rows `e * rows / count..` of each matrix.
#[derive(Clone, Copy, Debug)]
pub struct Experts<'a> {
    /// Experts.
    pub count: usize,
    /// `[count * width, hidden]`.
    pub gate: Matrix<'a>,
    /// `[count * width, hidden]`.
    pub up: Matrix<'a>,
    /// `[count * hidden, width]`.
    pub down: Matrix<'a>,
    /// `[count, width]`.
    pub gate_bias: Option<&'a [f32]>,
    /// `[count, width]`.
    pub up_bias: Option<&'a [f32]>,
    /// `[count, hidden]`.
    pub down_bias: Option<&'a [f32]>,
    /// Between gate, up and down.
    pub activation: ExpertActivation,
}

/// (token, rank) pairs sorted by expert.
struct Groups {
    /// Slots of expert e: `bounds[e]..bounds[e + 1]`.
    bounds: Vec<usize>,
    /// Pair (token * k + rank) in each slot.
    pairs: Vec<usize>,
    /// Slot of each pair.
    slots: Vec<usize>,
}

impl Groups {
    fn new(choices: &[Choice], experts: usize) -> Self {
        let mut bounds = vec![0; experts + 1];
        for choice in choices {
            bounds[choice.expert + 1] += 1;
        }
        for e in 0..experts {
            bounds[e + 1] += bounds[e];
        }
        let mut next = bounds.clone();
        let (mut pairs, mut slots) = (vec![0; choices.len()], vec![0; choices.len()]);
        for (pair, choice) in choices.iter().enumerate() {
            let slot = next[choice.expert];
            next[choice.expert] += 1;
            pairs[slot] = pair;
            slots[pair] = slot;
        }
        Self {
            bounds,
            pairs,
            slots,
        }
    }
}

/// What [`moe`] writes and reads again; kept, so that the memory is asked for once.
#[derive(Default)]
pub struct MoeBuffers {
    /// `[slots, width]`
    inner: Vec<f32>,
    activations: Activations,
    /// `[slots, hidden]`
    outputs: Vec<f32>,
}

/// `out[t]` = sum over ranks of weight times the expert's output, for the tokens of `x`
/// `[n, hidden]`, with `choices` `[n, k]`. `out` becomes `[n, hidden]`.
pub fn moe(
    tools: Tools<'_>,
    experts: &Experts<'_>,
    x: &Activations,
    choices: &[Choice],
    k: usize,
    buffers: &mut MoeBuffers,
    out: &mut Vec<f32>,
) -> Result<(), NonFinite> {
    let hidden = x.k;
    let width = experts.gate.rows / experts.count;
    let groups = Groups::new(choices, experts.count);
    let slots = choices.len();
    let tokens: Vec<usize> = groups.pairs.iter().map(|pair| pair / k).collect();
    let precision = tools.precisions.experts;
    let floats = |w: &Matrix<'_>| precision == Precision::Reference || w.ty.is_float();
    let gathered = x.gather(
        &tokens,
        &groups.bounds,
        precision,
        floats(&experts.gate) || floats(&experts.up),
    );
    let MoeBuffers {
        inner,
        activations,
        outputs,
    } = buffers;

    let busiest = groups
        .bounds
        .windows(2)
        .map(|b| b[1] - b[0])
        .max()
        .unwrap_or(0);
    let inner = first(inner, slots * width);
    let strip = tools.strip(width, hidden, busiest * slots.min(experts.count));
    tools
        .team
        .for_blocks(inner, width, &groups.bounds, strip, |expert, mut block| {
            let (tokens, cols) = (block.rows(), block.cols());
            let rows = expert * width + cols.start..expert * width + cols.end;
            let half = |w: &Matrix<'_>, bias: Option<&[f32]>| {
                let mut y = vec![0.0; tokens.len() * rows.len()];
                matmul(
                    tools.isa,
                    w,
                    rows.clone(),
                    &gathered,
                    tokens.clone(),
                    precision,
                    &mut y,
                );
                if let Some(bias) = bias {
                    add_bias(&mut y, &bias[rows.clone()]);
                }
                y
            };
            let mut gate = half(&experts.gate, experts.gate_bias);
            let up = half(&experts.up, experts.up_bias);
            experts.activation.apply(&mut gate, &up);
            for (i, row) in gate.chunks_exact(cols.len()).enumerate() {
                block.row(i).copy_from_slice(row);
            }
        });
    check_finite("an expert's hidden value", inner, width).map_err(|bad| NonFinite {
        what: bad.what,
        row: groups.pairs[bad.row] / k,
    })?;
    quantize(
        tools.team,
        activations,
        inner,
        &groups.bounds,
        width,
        precision,
        floats(&experts.down),
    );

    let outputs = first(outputs, slots * hidden);
    let down = Linear {
        weight: experts.down,
        bias: experts.down_bias,
    };
    let strip = tools.strip(hidden, width, busiest * slots.min(experts.count));
    tools.team.for_blocks(
        outputs,
        hidden,
        &groups.bounds,
        strip,
        |expert, mut block| {
            let cols = block.cols();
            let rows = expert * hidden + cols.start..expert * hidden + cols.end;
            product(tools.isa, &down, rows, activations, precision, &mut block);
        },
    );

    out.clear();
    out.resize(x.n * hidden, 0.0);
    tools.team.for_chunks(out, hidden, |t, out| {
        let pairs = t * k..(t + 1) * k;
        for (choice, &slot) in choices[pairs.clone()].iter().zip(&groups.slots[pairs]) {
            let weight = choice.weight;
            for (o, y) in out.iter_mut().zip(&outputs[slot * hidden..][..hidden]) {
                *o += weight * y;
            }
        }
    });
    Ok(())
}

/// The first `len` values of a buffer that grows to hold them; what they were before is not told.
fn first(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_grouped_by_expert_in_token_order() {
        let choice = |expert| Choice {
            expert,
            weight: 0.5,
        };
        let groups = Groups::new(&[2, 0, 0, 2, 3, 2].map(choice), 4);
        assert_eq!(groups.bounds, [0, 2, 2, 5, 6]);
        assert_eq!(groups.pairs, [1, 2, 0, 3, 5, 4]);
        assert_eq!(groups.slots, [2, 0, 1, 3, 5, 4]);
    }
}
