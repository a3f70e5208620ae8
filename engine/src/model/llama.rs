//! Llama and kin (Touvron et al., 2023): grouped-query attention and SwiGLU.

use super::ModelError;
use super::batch::{BadRow, Batch};
use super::config::{Dims, Keys};
use super::loaded::{Architecture, Head, Pass};
use super::rope_keys::{rope_base, rope_scaling};
use super::self_attention::{Extras, Scratch, SelfAttention};
use super::tensors::{Stored, StoredLinear, Tensors};
use crate::ops::{Pairs, RopeTable, YarnRamp, add_to, embed, rms_norm, swiglu};

pub(super) struct Llama {
    dims: Dims,
    width: usize,
    embedding: Stored,
    layers: Vec<Layer>,
    head: Head,
    rope: RopeTable,
}

struct Layer {
    attention: SelfAttention,
    ffn_norm: Vec<f32>,
    gate: StoredLinear,
    up: StoredLinear,
    down: StoredLinear,
}

impl Llama {
    pub fn load(
        keys: Keys<'_>,
        tensors: &mut Tensors<'_>,
        ramp: YarnRamp,
    ) -> Result<Self, ModelError> {
        let dims = Dims::read(keys)?;
        if let Some(experts) = keys.opt_count("expert_count", 0..=4096)?.filter(|&n| n > 0) {
            let expected = "0: llama models with experts (Mixtral) are not supported";
            return Err(keys.wrong("expert_count", experts, expected));
        }
        let width = keys.count("feed_forward_length", 1..=1 << 20)?;
        let Dims {
            hidden, head_dim, ..
        } = dims;
        let vocab = tensors.rows_of("token_embd.weight", hidden)?;
        let embedding = tensors.matrix("token_embd.weight", hidden, vocab)?;
        let mut layers = Vec::with_capacity(dims.layers);
        for i in 0..dims.layers {
            let name = |part: &str| format!("blk.{i}.{part}");
            layers.push(Layer {
                attention: SelfAttention::load(tensors, i, &dims, Extras::default())?,
                ffn_norm: tensors.vectors(&name("ffn_norm.weight"), hidden, 1)?,
                gate: tensors.linear(&name("ffn_gate"), hidden, width)?,
                up: tensors.linear(&name("ffn_up"), hidden, width)?,
                down: tensors.linear(&name("ffn_down"), width, hidden)?,
            });
        }
        let head = Head::load(tensors, &dims, &embedding)?;
        let rotated = keys
            .opt_count("rope.dimension_count", 2..=head_dim)?
            .unwrap_or(head_dim);
        if !rotated.is_multiple_of(2) {
            return Err(keys.wrong("rope.dimension_count", rotated, "an even number"));
        }
        let base = rope_base(keys, "rope.freq_base", 10_000.0)?;
        let scaling = rope_scaling(keys, ramp)?;
        let divisors = tensors.opt_vectors("rope_freqs.weight", rotated / 2, 1)?;
        let rope = RopeTable::new(rotated, base, scaling, Pairs::Adjacent, divisors.as_deref());
        Ok(Self {
            dims,
            width,
            embedding,
            layers,
            head,
            rope,
        })
    }
}

impl Architecture for Llama {
    fn head(&self) -> &Head {
        &self.head
    }

    fn dims(&self) -> &Dims {
        &self.dims
    }

    fn forward(&self, pass: &mut Pass<'_>, batch: &mut Batch<'_>) -> Result<Vec<f32>, BadRow> {
        let Dims { hidden, eps, .. } = self.dims;
        let n = batch.tokens.len();
        let dense = pass.tools.precisions.dense;
        let rotation = self.rope.rotation(batch.positions());
        let (mut x, mut scratch) = (Vec::new(), Scratch::default());
        let (mut gate, mut up) = (Vec::new(), Vec::new());
        embed(&self.embedding.matrix(pass.file), &batch.tokens, &mut x);
        for (i, layer) in self.layers.iter().enumerate() {
            pass.layer = Some(i);
            let (dims, scratch) = (&self.dims, &mut scratch);
            layer
                .attention
                .add(pass, batch, dims, &rotation, &mut x, scratch)?;

            let Scratch { h, y, .. } = scratch;
            rms_norm(pass.tools.team, &x, &layer.ffn_norm, eps, h);
            pass.take(h, n, hidden, dense)?;
            pass.linear(&layer.gate, &mut gate);
            pass.linear(&layer.up, &mut up);
            swiglu(&mut gate, &up);
            pass.take(&gate, n, self.width, dense)?;
            pass.linear(&layer.down, y);
            add_to(&mut x, y);
        }
        Ok(x)
    }
}
