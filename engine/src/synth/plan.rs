//! What is in the file: metadata in the keys of a real gpt-oss file, and a recipe a tensor.

use super::vocab::VocabKind;
use super::{Shape, SynthError};
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

/// A short template in harmony's message format.
const TEMPLATE: &str = "\
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
<|start|>assistant<|channel|>final<|message|>{{ message.content }}<|end|>
{%- else -%}
<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}
";

impl Plan {
    fn add(&mut self, name: &str, ty: GgmlType, dims: &[u32], recipe: Recipe) {
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
pub fn plan(shape: &Shape, vocab: VocabKind, skew: f32) -> Result<Plan, SynthError> {
    shape.check()?;
    vocab.check()?;
    let mut plan = Plan {
        writer: GgufWriter::default(),
        recipes: Vec::new(),
    };
    let vocab_size = metadata(&mut plan.writer, shape, vocab);
    tensors(&mut plan, shape, vocab_size, skew);
    Ok(plan)
}

fn metadata(w: &mut GgufWriter, shape: &Shape, vocab: VocabKind) -> u32 {
    let string = |s: &str| Value::String(s.to_owned());
    w.set("general.architecture", string("gpt-oss"));
    w.set("general.name", string("synthetic gpt-oss"));
    w.set("general.file_type", Value::U32(38)); // mostly MXFP4
    w.set("general.quantization_version", Value::U32(2));
    let sizes = [
        ("block_count", shape.layers),
        ("context_length", shape.context),
        ("embedding_length", shape.hidden),
        ("feed_forward_length", shape.expert_width),
        ("attention.head_count", shape.heads),
        ("attention.head_count_kv", shape.kv_heads),
        ("attention.key_length", shape.head_dim),
        ("attention.value_length", shape.head_dim),
        ("attention.sliding_window", shape.window),
        ("expert_count", shape.experts),
        ("expert_used_count", shape.experts_used),
        ("expert_feed_forward_length", shape.expert_width),
    ];
    for (key, value) in sizes {
        w.set(&format!("gpt-oss.{key}"), Value::U32(value));
    }
    w.set("gpt-oss.attention.layer_norm_rms_epsilon", Value::F32(1e-5));
    w.set("gpt-oss.rope.freq_base", Value::F32(shape.rope_base));
    if shape.yarn.factor > 1.0 {
        w.set("gpt-oss.rope.scaling.type", string("yarn"));
        w.set("gpt-oss.rope.scaling.factor", Value::F32(shape.yarn.factor));
        let original = Value::U32(shape.yarn.original);
        w.set("gpt-oss.rope.scaling.original_context_length", original);
    }
    let v = vocab.build();
    let size = v.tokens.len() as u32;
    let strings = |v: Vec<String>| Value::Array(v.into_iter().map(Value::String).collect());
    w.set("tokenizer.ggml.model", string("gpt2"));
    w.set("tokenizer.ggml.pre", string("gpt-4o"));
    w.set("tokenizer.ggml.tokens", strings(v.tokens));
    let types = v.types.into_iter().map(Value::I32).collect();
    w.set("tokenizer.ggml.token_type", Value::Array(types));
    w.set("tokenizer.ggml.merges", strings(v.merges));
    w.set("tokenizer.ggml.bos_token_id", Value::U32(v.bos));
    w.set("tokenizer.ggml.eos_token_id", Value::U32(v.eos));
    w.set("tokenizer.ggml.padding_token_id", Value::U32(v.pad));
    w.set("tokenizer.ggml.add_bos_token", Value::Bool(false));
    w.set("tokenizer.chat_template", string(TEMPLATE));
    size
}

fn tensors(plan: &mut Plan, s: &Shape, vocab: u32, skew: f32) {
    use GgmlType::{F32, Mxfp4, Q8_0};
    // Unit-size inputs (after a norm) give outputs of about unit size.
    let fan_in = |n: u32| 1.0 / (n as f32).sqrt();
    let (q, kv) = (s.heads * s.head_dim, s.kv_heads * s.head_dim);
    let wide = fan_in(s.hidden);
    let norm = Recipe::NearOne(0.1);
    let bias = Recipe::Noise(0.1);
    plan.add(
        "token_embd.weight",
        Q8_0,
        &[s.hidden, vocab],
        Recipe::Noise(1.0),
    );
    for i in 0..s.layers {
        let mut add = |name: &str, ty, dims: &[u32], recipe| {
            plan.add(&format!("blk.{i}.{name}"), ty, dims, recipe);
        };
        add("attn_norm.weight", F32, &[s.hidden], norm);
        for (name, rows, std) in [("q", q, 1.5 * wide), ("k", kv, 1.5 * wide), ("v", kv, wide)] {
            add(
                &format!("attn_{name}.weight"),
                Q8_0,
                &[s.hidden, rows],
                Recipe::Noise(std),
            );
            add(&format!("attn_{name}.bias"), F32, &[rows], bias);
        }
        let out = Recipe::SlowOutput {
            std: fan_in(q),
            gain: if skew > 0.0 { 4.0 } else { 0.0 },
        };
        add("attn_output.weight", Q8_0, &[q, s.hidden], out);
        add("attn_output.bias", F32, &[s.hidden], bias);
        add("attn_sinks.weight", F32, &[s.heads], Recipe::Noise(1.0));
        add("post_attention_norm.weight", F32, &[s.hidden], norm);
        let router = Recipe::Router { std: wide, skew };
        add("ffn_gate_inp.weight", F32, &[s.hidden, s.experts], router);
        add(
            "ffn_gate_inp.bias",
            F32,
            &[s.experts],
            Recipe::RouterBias { skew },
        );
        for name in ["gate", "up"] {
            let dims = [s.hidden, s.expert_width, s.experts];
            add(
                &format!("ffn_{name}_exps.weight"),
                Mxfp4,
                &dims,
                Recipe::Noise(wide),
            );
            add(
                &format!("ffn_{name}_exps.bias"),
                F32,
                &[s.expert_width, s.experts],
                bias,
            );
        }
        let down = Recipe::Noise(fan_in(s.expert_width));
        let dims = [s.expert_width, s.hidden, s.experts];
        add("ffn_down_exps.weight", Mxfp4, &dims, down);
        add("ffn_down_exps.bias", F32, &[s.hidden, s.experts], bias);
    }
    plan.add("output_norm.weight", F32, &[s.hidden], norm);
    plan.add(
        "output.weight",
        Q8_0,
        &[s.hidden, vocab],
        Recipe::Noise(2.0 * wide),
    );
}
