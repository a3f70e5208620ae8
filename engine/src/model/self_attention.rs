//! Grouped-query self-attention, with the parts that only some architectures have.

use super::ModelError;
use super::batch::{BadRow, Batch};
use super::config::Dims;
use super::loaded::Pass;
use super::tensors::{StoredLinear, Tensors};
use crate::ops::{AttentionShape, Rotation, add_to, attention, rms_norm};

/// The attention of a layer with its norm and its residual connection.
pub(super) struct SelfAttention {
    layer: usize,
    norm: Vec<f32>,
    q: StoredLinear,
    k: StoredLinear,
    v: StoredLinear,
    o: StoredLinear,
    /// Norms of each head of the queries and of the keys, before they turn.
    head_norms: Option<[Vec<f32>; 2]>,
    sinks: Option<Vec<f32>>,
    window: Option<usize>,
}

/// What an architecture's attention has beyond the four matrices.
#[derive(Clone, Copy, Default)]
pub(super) struct Extras {
    /// `attn_q_norm` and `attn_k_norm`.
    pub head_norms: bool,
    /// `attn_sinks`: one logit a head without a value.
    pub sinks: bool,
    /// How many positions a token sees, itself among them; `None`: all.
    pub window: Option<usize>,
}

/// Buffers that the layers of a pass share.
#[derive(Default)]
pub(super) struct Scratch {
    /// Normed or attended hidden states.
    pub h: Vec<f32>,
    /// What a part adds to the hidden states.
    pub y: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

impl SelfAttention {
    /// `blk.LAYER.attn_*`.
    pub fn load(
        tensors: &mut Tensors<'_>,
        layer: usize,
        dims: &Dims,
        extras: Extras,
    ) -> Result<Self, ModelError> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let &Dims {
            hidden,
            heads,
            kv_heads,
            head_dim,
            ..
        } = dims;
        let (q_width, kv_width) = (heads * head_dim, kv_heads * head_dim);
        let head_norms = if extras.head_norms {
            Some([
                tensors.vectors(&name("attn_q_norm.weight"), head_dim, 1)?,
                tensors.vectors(&name("attn_k_norm.weight"), head_dim, 1)?,
            ])
        } else {
            None
        };
        let sinks = if extras.sinks {
            Some(tensors.vectors(&name("attn_sinks.weight"), heads, 1)?)
        } else {
            None
        };
        Ok(Self {
            layer,
            norm: tensors.vectors(&name("attn_norm.weight"), hidden, 1)?,
            q: tensors.linear(&name("attn_q"), hidden, q_width)?,
            k: tensors.linear(&name("attn_k"), hidden, kv_width)?,
            v: tensors.linear(&name("attn_v"), hidden, kv_width)?,
            o: tensors.linear(&name("attn_output"), q_width, hidden)?,
            head_norms,
            sinks,
            window: extras.window,
        })
    }

    /// How many positions a token sees; `None`: all.
    pub fn window(&self) -> Option<usize> {
        self.window
    }

    /// Writes the keys and values of the pass's tokens into their caches and adds what they
    /// attend to to the hidden states `x`.
    pub fn add(
        &self,
        pass: &mut Pass<'_>,
        batch: &mut Batch<'_>,
        dims: &Dims,
        rotation: &Rotation,
        x: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), BadRow> {
        let &Dims {
            hidden,
            heads,
            kv_heads,
            head_dim,
            eps,
            ..
        } = dims;
        let Scratch { h, y, q, k, v } = scratch;
        let n = batch.tokens.len();
        let dense = pass.tools.precisions.dense;
        rms_norm(pass.tools.team, x, &self.norm, eps, h);
        pass.take(h, n, hidden, dense)?;
        pass.linear(&self.q, q);
        pass.linear(&self.k, k);
        pass.linear(&self.v, v);
        if let Some([of_q, of_k]) = &self.head_norms {
            for (heads, norm) in [(&mut *q, of_q), (&mut *k, of_k)] {
                rms_norm(pass.tools.team, heads, norm, eps, h);
                std::mem::swap(heads, h);
            }
        }
        rotation.apply(pass.tools.team, q, heads, head_dim);
        rotation.apply(pass.tools.team, k, kv_heads, head_dim);
        batch.write(self.layer, k, v)?;
        let shape = AttentionShape {
            heads,
            kv_heads,
            head_dim,
            window: self.window,
            scale: 1.0 / (head_dim as f32).sqrt(),
        };
        attention(
            pass.tools,
            &shape,
            q,
            &batch.places,
            &batch.layer(self.layer),
            self.sinks.as_deref(),
            h,
        );
        #[cfg(test)]
        pass.tools.isa.break_attention(h, heads * head_dim);
        pass.take(h, n, heads * head_dim, dense)?;
        pass.linear(&self.o, y);
        add_to(x, y);
        Ok(())
    }
}
