//! What is in the file: metadata in the keys of a real file, and a recipe a tensor.

use super::shape::Family;
use super::vocab::VocabKind;
use super::{Shape, SynthError, gpt_oss, qwen3_moe};
use crate::formats::blocks::GgmlType;
use crate::formats::gguf::{GgufWriter, Value};

/// How a tensor's values are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recipe {
    /// Independent values of mean 0 and this standard deviation.
    Noise(f32),
    /// 1 plus noise of this standard deviation (norm weights).
    NearOne(f32),
    /// Attention output: noise, plus a gain along the model's slow directions
    /// (`fill::slow_direction`), so that what attention averages over many tokens shows there.
    SlowOutput {
        /// Standard deviation of the noise.
        std: f32,
        /// Gain along each slow direction.
        gain: f32,
    },
    /// Router rows: noise, plus for each expert its own mix of the slow directions.
    Router {
        /// Standard deviation of the noise.
        std: f32,
        /// Size of the mix, in standard deviations of a logit.
        skew: f32,
    },
    /// Router biases: noise, and `-skew * (1 + 1/2 + ... + 1/rank - 1)` for a random ranking of
    /// the experts, which makes their odds fall about as rank^-skew (Zipf).
    RouterBias {
        /// Zipf's exponent; 0 gives noise alone.
        skew: f32,
    },
}

/// Which part of a model the reader wants from us: a header and the recipes in tensor order.
pub struct Plan {
    pub(super) writer: GgufWriter,
    pub(super) recipes: Vec<Recipe>,
}

impl Plan {
    /// Declares the next tensor.
    pub(super) fn add(&mut self, name: &str, ty: GgmlType, dims: &[u32], recipe: Recipe) {
        let dims: Vec<u64> = dims.iter().map(|d| u64::from(*d)).collect();
        self.writer.tensor(name, ty, &dims);
        self.recipes.push(recipe);
    }
}

/// Lays out a file of this shape.
///
/// `skew` 0 leaves routing to chance. Above 0, two things make expert use uneven and sticky as
/// in trained models: biases fall by rank (`RouterBias`), and router rows read the slow
/// directions that attention writes (`SlowOutput`), which change little from token to token.
/// Qwen3-MoE has no biases there, so that its use is sticky, and uneven only for that.
pub fn plan(shape: &Shape, vocab: VocabKind, skew: f32) -> Result<Plan, SynthError> {
    shape.check()?;
    vocab.check(shape.family)?;
    let mut plan = Plan {
        writer: GgufWriter::default(),
        recipes: Vec::new(),
    };
    let vocab_size = metadata(&mut plan.writer, shape, vocab);
    match shape.family {
        Family::GptOss => gpt_oss::tensors(&mut plan, shape, vocab_size, skew),
        Family::Qwen3Moe => qwen3_moe::tensors(&mut plan, shape, vocab_size, skew),
    }
    Ok(plan)
}

/// What a family writes beside sizes.
pub(super) struct Facts {
    pub(super) name: &'static str,
    /// `general.file_type` (`llama_ftype` in llama.h).
    pub(super) file_type: u32,
    /// Width of a feed-forward part without experts.
    pub(super) dense_width: u32,
    pub(super) eps: f32,
    /// `tokenizer.ggml.pre`.
    pub(super) pre: &'static str,
    pub(super) template: &'static str,
}

/// Writes the metadata and returns the size of the vocabulary.
fn metadata(w: &mut GgufWriter, shape: &Shape, vocab: VocabKind) -> u32 {
    let string = |s: &str| Value::String(s.to_owned());
    let arch = shape.family.architecture();
    let facts = match shape.family {
        Family::GptOss => gpt_oss::facts(shape),
        Family::Qwen3Moe => qwen3_moe::facts(shape),
    };
    w.set("general.architecture", string(arch));
    w.set("general.name", string(facts.name));
    w.set("general.file_type", Value::U32(facts.file_type));
    w.set("general.quantization_version", Value::U32(2));
    let mut sizes = vec![
        ("block_count", shape.layers),
        ("context_length", shape.context),
        ("embedding_length", shape.hidden),
        ("feed_forward_length", facts.dense_width),
        ("attention.head_count", shape.heads),
        ("attention.head_count_kv", shape.kv_heads),
        ("attention.key_length", shape.head_dim),
        ("attention.value_length", shape.head_dim),
    ];
    sizes.extend(shape.window.map(|n| ("attention.sliding_window", n)));
    sizes.extend([
        ("expert_count", shape.experts),
        ("expert_used_count", shape.experts_used),
        ("expert_feed_forward_length", shape.expert_width),
    ]);
    let key = |key: &str| format!("{arch}.{key}");
    for (name, value) in sizes {
        w.set(&key(name), Value::U32(value));
    }
    w.set(
        &key("attention.layer_norm_rms_epsilon"),
        Value::F32(facts.eps),
    );
    w.set(&key("rope.freq_base"), Value::F32(shape.rope_base));
    if shape.yarn.factor > 1.0 {
        w.set(&key("rope.scaling.type"), string("yarn"));
        w.set(&key("rope.scaling.factor"), Value::F32(shape.yarn.factor));
        let original = Value::U32(shape.yarn.original);
        w.set(&key("rope.scaling.original_context_length"), original);
    }
    let v = vocab.build(shape.family);
    let size = v.tokens.len() as u32;
    let strings = |v: Vec<String>| Value::Array(v.into_iter().map(Value::String).collect());
    w.set("tokenizer.ggml.model", string("gpt2"));
    w.set("tokenizer.ggml.pre", string(facts.pre));
    w.set("tokenizer.ggml.tokens", strings(v.tokens));
    let types = v.types.into_iter().map(Value::I32).collect();
    w.set("tokenizer.ggml.token_type", Value::Array(types));
    w.set("tokenizer.ggml.merges", strings(v.merges));
    w.set("tokenizer.ggml.bos_token_id", Value::U32(v.bos));
    w.set("tokenizer.ggml.eos_token_id", Value::U32(v.eos));
    w.set("tokenizer.ggml.padding_token_id", Value::U32(v.pad));
    w.set("tokenizer.ggml.add_bos_token", Value::Bool(false));
    w.set("tokenizer.chat_template", string(facts.template));
    size
}

/// The standard deviation of weights that turn `n` inputs of unit size into outputs of about
/// unit size.
pub(super) fn fan_in(n: u32) -> f32 {
    1.0 / (n as f32).sqrt()
}
