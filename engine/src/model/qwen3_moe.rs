//! Qwen3-MoE (transformers' `Qwen3MoeForCausalLM`): each head of the queries and keys is normed
//! before it turns, and every feed-forward part is a mixture of experts.

use super::ModelError;
use super::batch::{BadRow, Batch};
use super::config::{Dims, Keys};
use super::experts::{ExpertDims, ExpertLayer};
use super::loaded::{Architecture, Head, Pass};
use super::rope_keys::{rope_base, rope_scaling};
use super::self_attention::{Extras, Scratch, SelfAttention};
use super::tensors::{Stored, Tensors};
use crate::ops::{ExpertActivation, Pairs, RopeTable, YarnRamp, embed};

pub(super) struct Qwen3Moe {
    dims: Dims,
    embedding: Stored,
    layers: Vec<Layer>,
    head: Head,
    rope: RopeTable,
}

struct Layer {
    attention: SelfAttention,
    experts: ExpertLayer,
}

impl Qwen3Moe {
    pub fn load(
        keys: Keys<'_>,
        tensors: &mut Tensors<'_>,
        ramp: YarnRamp,
    ) -> Result<Self, ModelError> {
        let dims = Dims::read(keys)?;
        let experts = ExpertDims::read(keys)?;
        let Dims {
            hidden, head_dim, ..
        } = dims;
        let vocab = tensors.rows_of("token_embd.weight", hidden)?;
        let embedding = tensors.matrix("token_embd.weight", hidden, vocab)?;
        let extras = Extras {
            head_norms: true,
            ..Extras::default()
        };
        // The reference softens all experts' logits, then scales the chosen shares to a sum of 1,
        // which is the softmax over the chosen logits alone.
        let layer = |i| {
            let silu = ExpertActivation::Silu;
            Ok(Layer {
                attention: SelfAttention::load(tensors, i, &dims, extras)?,
                experts: ExpertLayer::load(tensors, i, hidden, experts, "ffn_norm", silu)?,
            })
        };
        let layers = (0..dims.layers)
            .map(layer)
            .collect::<Result<_, ModelError>>()?;
        let head = Head::load(tensors, &dims, &embedding)?;
        keys.opt_count("rope.dimension_count", head_dim..=head_dim)?;
        let base = rope_base(keys, "rope.freq_base", 10_000.0)?;
        let scaling = rope_scaling(keys, ramp)?;
        let rope = RopeTable::new(head_dim, base, scaling, Pairs::Halves, None);
        Ok(Self {
            dims,
            embedding,
            layers,
            head,
            rope,
        })
    }
}

impl Architecture for Qwen3Moe {
    fn head(&self) -> &Head {
        &self.head
    }

    fn dims(&self) -> &Dims {
        &self.dims
    }

    fn forward(&self, pass: &mut Pass<'_>, batch: &mut Batch<'_>) -> Result<Vec<f32>, BadRow> {
        let rotation = self.rope.rotation(batch.positions());
        let (mut x, mut scratch) = (Vec::new(), Scratch::default());
        embed(&self.embedding.matrix(pass.file), &batch.tokens, &mut x);
        for (i, layer) in self.layers.iter().enumerate() {
            pass.layer = Some(i);
            let (dims, scratch) = (&self.dims, &mut scratch);
            layer
                .attention
                .add(pass, batch, dims, &rotation, &mut x, scratch)?;
            layer.experts.add(pass, dims, &mut x, scratch)?;
        }
        Ok(x)
    }
}
