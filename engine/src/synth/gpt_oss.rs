//! gpt-oss as its files are: Q8_0 around experts in MXFP4.

use super::Shape;
use super::plan::{Facts, Plan, Recipe, fan_in};
use crate::formats::blocks::GgmlType;

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

pub(super) fn facts(shape: &Shape) -> Facts {
    Facts {
        name: "synthetic gpt-oss",
        file_type: 38, // mostly MXFP4
        dense_width: shape.expert_width,
        eps: 1e-5,
        pre: "gpt-4o",
        template: TEMPLATE,
    }
}

/// Its tensors.
pub(super) fn tensors(plan: &mut Plan, s: &Shape, vocab: u32, skew: f32) {
    use GgmlType::{F32, Mxfp4, Q8_0};
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
