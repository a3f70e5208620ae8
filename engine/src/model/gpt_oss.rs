//! gpt-oss: sliding-window attention on every other layer, attention sinks, and a mixture of
//! experts in each block (OpenAI's `gpt_oss/torch/model.py`).

use super::ModelError;
use super::batch::{BadRow, Batch};
use super::config::{Dims, Keys};
use super::experts::{ExpertDims, ExpertLayer};
use super::loaded::{Architecture, Head, Pass};
use super::rope_keys::{rope_base, rope_scaling};
use super::self_attention::{Extras, Scratch, SelfAttention};
use super::tensors::{Stored, Tensors};
use crate::formats::gguf::Value;
use crate::ops::{ExpertActivation, Pairs, RopeTable, YarnRamp, embed};

pub(super) struct GptOss {
    dims: Dims,
    embedding: Stored,
    layers: Vec<Layer>,
    head: Head,
    rope: RopeTable,
    rope_windowed: RopeTable,
}

struct Layer {
    windowed: bool,
    attention: SelfAttention,
    experts: ExpertLayer,
}

impl GptOss {
    pub fn load(
        keys: Keys<'_>,
        tensors: &mut Tensors<'_>,
        ramp: YarnRamp,
    ) -> Result<Self, ModelError> {
        let dims = Dims::read(keys)?;
        let experts = ExpertDims::read(keys)?;
        let windows = windows(keys, dims.layers)?;
        let Dims {
            hidden, head_dim, ..
        } = dims;
        let vocab = tensors.rows_of("token_embd.weight", hidden)?;
        let embedding = tensors.matrix("token_embd.weight", hidden, vocab)?;
        let mut layers = Vec::with_capacity(dims.layers);
        for (i, window) in windows.into_iter().enumerate() {
            let extras = Extras {
                sinks: true,
                window,
                ..Extras::default()
            };
            let (norm, clamped) = ("post_attention_norm", ExpertActivation::Clamped);
            layers.push(Layer {
                windowed: window.is_some(),
                attention: SelfAttention::load(tensors, i, &dims, extras)?,
                experts: ExpertLayer::load(tensors, i, hidden, experts, norm, clamped)?,
            });
        }
        let head = Head::load(tensors, &dims, &embedding)?;
        let scaling = rope_scaling(keys, ramp)?;
        keys.opt_count("rope.dimension_count", head_dim..=head_dim)?;
        let base = rope_base(keys, "rope.freq_base", 150_000.0)?;
        let base_windowed = rope_base(keys, "rope.freq_base_swa", base)?;
        let table = |base| RopeTable::new(head_dim, base, scaling, Pairs::Halves, None);
        let (rope, rope_windowed) = (table(base), table(base_windowed));
        Ok(Self {
            dims,
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

    fn dims(&self) -> &Dims {
        &self.dims
    }

    fn windows(&self) -> Vec<Option<usize>> {
        let window = |layer: &Layer| layer.attention.window();
        self.layers.iter().map(window).collect()
    }

    fn forward(&self, pass: &mut Pass<'_>, batch: &mut Batch<'_>) -> Result<Vec<f32>, BadRow> {
        let rotation = self.rope.rotation(batch.positions());
        let rotation_windowed = self.rope_windowed.rotation(batch.positions());
        let (mut x, mut scratch) = (Vec::new(), Scratch::default());
        embed(&self.embedding.matrix(pass.file), &batch.tokens, &mut x);
        for (i, layer) in self.layers.iter().enumerate() {
            pass.layer = Some(i);
            let turn = if layer.windowed {
                &rotation_windowed
            } else {
                &rotation
            };
            let (dims, scratch) = (&self.dims, &mut scratch);
            layer
                .attention
                .add(pass, batch, dims, turn, &mut x, scratch)?;
            layer.experts.add(pass, dims, &mut x, scratch)?;
        }
        Ok(x)
    }
}
