//! A feed-forward part made of experts behind a router.

use super::ModelError;
use super::batch::BadRow;
use super::config::{Dims, Keys};
use super::loaded::Pass;
use super::self_attention::Scratch;
use super::tensors::{Stored, StoredLinear, Tensors};
use crate::ops::{ExpertActivation, Experts, add_to, check_finite, moe, rms_norm, route};

/// Sizes of a layer's experts.
#[derive(Clone, Copy)]
pub(super) struct ExpertDims {
    pub count: usize,
    /// Experts that a token goes to.
    pub used: usize,
    /// Width of an expert.
    pub width: usize,
}

impl ExpertDims {
    /// Reads and checks the sizes.
    pub fn read(keys: Keys<'_>) -> Result<Self, ModelError> {
        let count = keys.count("expert_count", 1..=4096)?;
        let used = keys.count("expert_used_count", 1..=4096)?;
        if used > count {
            let expected = format!("at most expert_count = {count}");
            return Err(keys.wrong("expert_used_count", used, expected));
        }
        let width = keys.count("expert_feed_forward_length", 1..=1 << 20)?;
        Ok(Self { count, used, width })
    }
}

/// The experts of a layer with their router, their norm and their residual connection.
pub(super) struct ExpertLayer {
    dims: ExpertDims,
    activation: ExpertActivation,
    norm: Vec<f32>,
    router: StoredLinear,
    gate: Stored,
    up: Stored,
    down: Stored,
    gate_bias: Option<Vec<f32>>,
    up_bias: Option<Vec<f32>>,
    down_bias: Option<Vec<f32>>,
}

impl ExpertLayer {
    /// `blk.LAYER.ffn_*`, and the norm before them, `blk.LAYER.NORM.weight`.
    pub fn load(
        tensors: &mut Tensors<'_>,
        layer: usize,
        hidden: usize,
        dims: ExpertDims,
        norm: &str,
        activation: ExpertActivation,
    ) -> Result<Self, ModelError> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let ExpertDims { count, width, .. } = dims;
        let bias = |tensors: &mut Tensors<'_>, part: &str, rows: usize| {
            tensors.opt_vectors(&name(&format!("ffn_{part}_exps.bias")), rows, count)
        };
        Ok(Self {
            dims,
            activation,
            norm: tensors.vectors(&name(&format!("{norm}.weight")), hidden, 1)?,
            router: tensors.linear(&name("ffn_gate_inp"), hidden, count)?,
            gate: tensors.experts(&name("ffn_gate_exps.weight"), hidden, width, count)?,
            up: tensors.experts(&name("ffn_up_exps.weight"), hidden, width, count)?,
            down: tensors.experts(&name("ffn_down_exps.weight"), width, hidden, count)?,
            gate_bias: bias(tensors, "gate", width)?,
            up_bias: bias(tensors, "up", width)?,
            down_bias: bias(tensors, "down", hidden)?,
        })
    }

    /// Adds what each token's experts make of the hidden states `x` to them.
    pub fn add(
        &self,
        pass: &mut Pass<'_>,
        dims: &Dims,
        x: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), BadRow> {
        let Scratch { h, y, .. } = scratch;
        let ExpertDims { count, used, .. } = self.dims;
        let n = x.len() / dims.hidden;
        rms_norm(pass.tools.team, x, &self.norm, dims.eps, h);
        pass.take(h, n, dims.hidden, pass.tools.precisions.dense)?;
        pass.linear(&self.router, y);
        pass.locate(check_finite("a router logit", y, count))?;
        let mut choices = Vec::with_capacity(n * used);
        for logits in y.chunks_exact(count) {
            route(logits, used, &mut choices);
        }
        let experts = Experts {
            count,
            gate: self.gate.matrix(pass.file),
            up: self.up.matrix(pass.file),
            down: self.down.matrix(pass.file),
            gate_bias: self.gate_bias.as_deref(),
            up_bias: self.up_bias.as_deref(),
            down_bias: self.down_bias.as_deref(),
            activation: self.activation,
        };
        let done = moe(
            pass.tools,
            &experts,
            &pass.activations,
            &choices,
            used,
            &mut pass.moe,
            y,
        );
        pass.locate(done)?;
        add_to(x, y);
        Ok(())
    }
}
