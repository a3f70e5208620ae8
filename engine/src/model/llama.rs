//! Llama and kin (Touvron et al., 2023): grouped-query attention and SwiGLU.

use super::ModelError;
use super::batch::{BadRow, Batch};
use super::config::{Dims, Keys};
use super::loaded::{Architecture, Head, Pass};
use super::rope_keys::{rope_base, rope_scaling};
use super::tensors::{Stored, StoredLinear, Tensors};
use crate::kv::KvShape;
use crate::ops::{
    AttentionShape, Pairs, RopeTable, YarnRamp, add_to, attention, embed, rms_norm, swiglu,
};

pub(super) struct Llama {
    dims: Dims,
    width: usize,
    embedding: Stored,
    layers: Vec<Layer>,
    head: Head,
    rope: RopeTable,
}

struct Layer {
    attn_norm: Vec<f32>,
    q: StoredLinear,
    k: StoredLinear,
    v: StoredLinear,
    o: StoredLinear,
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
            hidden,
            heads,
            kv_heads,
            head_dim,
            ..
        } = dims;
        let (q_width, kv_width) = (heads * head_dim, kv_heads * head_dim);
        let vocab = tensors.rows_of("token_embd.weight", hidden)?;
        let embedding = tensors.matrix("token_embd.weight", hidden, vocab)?;
        let mut layers = Vec::with_capacity(dims.layers);
        for i in 0..dims.layers {
            let name = |part: &str| format!("blk.{i}.{part}");
            layers.push(Layer {
                attn_norm: tensors.vectors(&name("attn_norm.weight"), hidden, 1)?,
                q: tensors.linear(&name("attn_q"), hidden, q_width)?,
                k: tensors.linear(&name("attn_k"), hidden, kv_width)?,
                v: tensors.linear(&name("attn_v"), hidden, kv_width)?,
                o: tensors.linear(&name("attn_output"), q_width, hidden)?,
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

    fn context(&self) -> usize {
        self.dims.context
    }

    fn kv_shape(&self, ctx: usize) -> KvShape {
        let Dims {
            layers,
            kv_heads,
            head_dim,
            ..
        } = self.dims;
        KvShape {
            layers,
            kv_heads,
            head_dim,
            ctx,
        }
    }

    fn forward(&self, pass: &mut Pass<'_>, batch: &mut Batch<'_>) -> Result<Vec<f32>, BadRow> {
        let Dims {
            hidden,
            heads,
            kv_heads,
            head_dim,
            eps,
            ..
        } = self.dims;
        let n = batch.tokens.len();
        let dense = pass.tools.precisions.dense;
        let rotation = self.rope.rotation(batch.positions());
        let shape = AttentionShape {
            heads,
            kv_heads,
            head_dim,
            window: None,
            scale: 1.0 / (head_dim as f32).sqrt(),
        };
        let (mut x, mut h) = (Vec::new(), Vec::new());
        let (mut q, mut k, mut v, mut y) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut gate, mut up) = (Vec::new(), Vec::new());
        embed(&self.embedding.matrix(pass.file), &batch.tokens, &mut x);
        for (i, layer) in self.layers.iter().enumerate() {
            pass.layer = Some(i);
            rms_norm(&x, &layer.attn_norm, eps, &mut h);
            pass.take(&h, n, hidden, dense)?;
            pass.linear(&layer.q, &mut q);
            pass.linear(&layer.k, &mut k);
            pass.linear(&layer.v, &mut v);
            rotation.apply(&mut q, heads, head_dim);
            rotation.apply(&mut k, kv_heads, head_dim);
            batch.write(i, &k, &v);
            attention(
                pass.tools.team,
                &shape,
                &q,
                &batch.places,
                &batch.layer(i),
                None,
                &mut h,
            );
            pass.take(&h, n, heads * head_dim, dense)?;
            pass.linear(&layer.o, &mut y);
            add_to(&mut x, &y);

            rms_norm(&x, &layer.ffn_norm, eps, &mut h);
            pass.take(&h, n, hidden, dense)?;
            pass.linear(&layer.gate, &mut gate);
            pass.linear(&layer.up, &mut up);
            swiglu(&mut gate, &up);
            pass.take(&gate, n, self.width, dense)?;
            pass.linear(&layer.down, &mut y);
            add_to(&mut x, &y);
        }
        Ok(x)
    }
}
