//! gpt-oss: sliding-window attention on every other layer, attention sinks, and a mixture of
//! experts in each block (OpenAI's `gpt_oss/torch/model.py`).

use super::ModelError;
use super::batch::{BadRow, Batch};
use super::config::{Dims, Keys};
use super::loaded::{Architecture, Head, Pass};
use super::rope_keys::{rope_base, rope_scaling};
use super::tensors::{Stored, StoredLinear, Tensors};
use crate::formats::gguf::Value;
use crate::kv::KvShape;
use crate::ops::{
    AttentionShape, ExpertActivation, Experts, Pairs, RopeTable, YarnRamp, add_to, attention,
    check_finite, embed, moe, rms_norm, route,
};

pub(super) struct GptOss {
    dims: Dims,
    experts: usize,
    experts_used: usize,
    embedding: Stored,
    layers: Vec<Layer>,
    head: Head,
    rope: RopeTable,
    rope_windowed: RopeTable,
}

struct Layer {
    window: Option<usize>,
    attn_norm: Vec<f32>,
    q: StoredLinear,
    k: StoredLinear,
    v: StoredLinear,
    o: StoredLinear,
    sinks: Vec<f32>,
    ffn_norm: Vec<f32>,
    router: StoredLinear,
    gate: Stored,
    up: Stored,
    down: Stored,
    gate_bias: Option<Vec<f32>>,
    up_bias: Option<Vec<f32>>,
    down_bias: Option<Vec<f32>>,
}

impl GptOss {
    pub fn load(
        keys: Keys<'_>,
        tensors: &mut Tensors<'_>,
        ramp: YarnRamp,
    ) -> Result<Self, ModelError> {
        let dims = Dims::read(keys)?;
        let experts = keys.count("expert_count", 1..=4096)?;
        let experts_used = keys.count("expert_used_count", 1..=4096)?;
        if experts_used > experts {
            let expected = format!("at most expert_count = {experts}");
            return Err(keys.wrong("expert_used_count", experts_used, expected));
        }
        let width = keys.count("expert_feed_forward_length", 1..=1 << 20)?;
        let windows = windows(keys, dims.layers)?;

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
        for (i, window) in windows.into_iter().enumerate() {
            let name = |part: &str| format!("blk.{i}.{part}");
            let expert_bias = |tensors: &mut Tensors<'_>, part: &str, rows: usize| {
                tensors.opt_vectors(&name(&format!("ffn_{part}_exps.bias")), rows, experts)
            };
            layers.push(Layer {
                window,
                attn_norm: tensors.vectors(&name("attn_norm.weight"), hidden, 1)?,
                q: tensors.linear(&name("attn_q"), hidden, q_width)?,
                k: tensors.linear(&name("attn_k"), hidden, kv_width)?,
                v: tensors.linear(&name("attn_v"), hidden, kv_width)?,
                o: tensors.linear(&name("attn_output"), q_width, hidden)?,
                sinks: tensors.vectors(&name("attn_sinks.weight"), heads, 1)?,
                ffn_norm: tensors.vectors(&name("post_attention_norm.weight"), hidden, 1)?,
                router: tensors.linear(&name("ffn_gate_inp"), hidden, experts)?,
                gate: tensors.experts(&name("ffn_gate_exps.weight"), hidden, width, experts)?,
                up: tensors.experts(&name("ffn_up_exps.weight"), hidden, width, experts)?,
                down: tensors.experts(&name("ffn_down_exps.weight"), width, hidden, experts)?,
                gate_bias: expert_bias(tensors, "gate", width)?,
                up_bias: expert_bias(tensors, "up", width)?,
                down_bias: expert_bias(tensors, "down", hidden)?,
            });
        }
        let head = Head::load(tensors, &dims, &embedding)?;
        let scaling = rope_scaling(keys, ramp)?;
        let rotated = keys.opt_count("rope.dimension_count", head_dim..=head_dim)?;
        let base = rope_base(keys, "rope.freq_base", 150_000.0)?;
        let base_windowed = rope_base(keys, "rope.freq_base_swa", base)?;
        let table = |base| {
            RopeTable::new(
                rotated.unwrap_or(head_dim),
                base,
                scaling,
                Pairs::Halves,
                None,
            )
        };
        let (rope, rope_windowed) = (table(base), table(base_windowed));
        Ok(Self {
            dims,
            experts,
            experts_used,
            embedding,
            layers,
            head,
            rope,
            rope_windowed,
        })
    }
}

/// Each layer's window: `attention.sliding_window` on even layers, or as
/// `attention.sliding_window_pattern` says (a period of which the last layer is full, or a flag a
/// layer).
fn windows(keys: Keys<'_>, layers: usize) -> Result<Vec<Option<usize>>, ModelError> {
    let window = keys.count("attention.sliding_window", 1..=1 << 24)?;
    let key = "attention.sliding_window_pattern";
    let windowed: Vec<bool> = if let Some(Value::Array(flags)) = keys.meta.get(&keys.key(key)) {
        if flags.len() != layers {
            let found = format!("an array of {}", flags.len());
            return Err(keys.wrong(key, found, format!("{layers} values, one a layer")));
        }
        let flag = |value: &Value| match value {
            Value::Bool(b) => Ok(*b),
            Value::U32(n) => Ok(*n != 0),
            Value::I32(n) => Ok(*n != 0),
            other => Err(keys.wrong(key, format!("{other:?}"), "booleans or a period")),
        };
        flags.iter().map(flag).collect::<Result<_, _>>()?
    } else {
        let period = keys.opt_count(key, 1..=1024)?.unwrap_or(2);
        (0..layers).map(|i| i % period < period - 1).collect()
    };
    Ok(windowed.into_iter().map(|w| w.then_some(window)).collect())
}

impl Architecture for GptOss {
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
        let rotation_windowed = self.rope_windowed.rotation(batch.positions());
        let (mut x, mut h) = (Vec::new(), Vec::new());
        let (mut q, mut k, mut v, mut y) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut choices = Vec::new();
        embed(&self.embedding.matrix(pass.file), &batch.tokens, &mut x);
        for (i, layer) in self.layers.iter().enumerate() {
            pass.layer = Some(i);
            rms_norm(&x, &layer.attn_norm, eps, &mut h);
            pass.take(&h, n, hidden, dense)?;
            pass.linear(&layer.q, &mut q);
            pass.linear(&layer.k, &mut k);
            pass.linear(&layer.v, &mut v);
            let turn = if layer.window.is_some() {
                &rotation_windowed
            } else {
                &rotation
            };
            turn.apply(&mut q, heads, head_dim);
            turn.apply(&mut k, kv_heads, head_dim);
            batch.write(i, &k, &v);
            let shape = AttentionShape {
                heads,
                kv_heads,
                head_dim,
                window: layer.window,
                scale: 1.0 / (head_dim as f32).sqrt(),
            };
            let sinks = Some(&layer.sinks[..]);
            attention(
                pass.tools.team,
                &shape,
                &q,
                &batch.places,
                &batch.layer(i),
                sinks,
                &mut h,
            );
            pass.take(&h, n, heads * head_dim, dense)?;
            pass.linear(&layer.o, &mut y);
            add_to(&mut x, &y);

            rms_norm(&x, &layer.ffn_norm, eps, &mut h);
            pass.take(&h, n, hidden, dense)?;
            pass.linear(&layer.router, &mut y);
            pass.locate(check_finite("a router logit", &y, self.experts))?;
            choices.clear();
            for logits in y.chunks_exact(self.experts) {
                route(logits, self.experts_used, &mut choices);
            }
            let experts = Experts {
                count: self.experts,
                gate: layer.gate.matrix(pass.file),
                up: layer.up.matrix(pass.file),
                down: layer.down.matrix(pass.file),
                gate_bias: layer.gate_bias.as_deref(),
                up_bias: layer.up_bias.as_deref(),
                down_bias: layer.down_bias.as_deref(),
                activation: ExpertActivation::Clamped,
            };
            let used = self.experts_used;
            let done = moe(
                pass.tools,
                &experts,
                &pass.activations,
                &choices,
                used,
                &mut y,
            );
            pass.locate(done)?;
            add_to(&mut x, &y);
        }
        Ok(x)
    }
}
