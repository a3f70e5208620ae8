//! Qwen3-MoE in the types that llama.cpp's `Q4_K_M` gives it (`llama-quant.cpp`).

use super::Shape;
use super::plan::{Facts, Plan, Recipe, fan_in};
use crate::formats::blocks::GgmlType;

/// ChatML.
const TEMPLATE: &str = "\
{% for message in messages %}\
{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}\
{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

pub(super) fn facts(shape: &Shape) -> Facts {
    Facts {
        name: "synthetic Qwen3-MoE",
        file_type: 15, // mostly Q4_K, medium
        dense_width: shape.expert_width * shape.experts_used,
        eps: 1e-6,
        pre: "qwen2",
        template: TEMPLATE,
    }
}

/// Whether the values and the second matrices of this layer get more bits: the first and the last
/// eighth of the layers, and every third one between.
fn more_bits(layer: u32, layers: u32) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

/// Its tensors.
pub(super) fn tensors(plan: &mut Plan, s: &Shape, vocab: u32, skew: f32) {
    use GgmlType::{F32, Q4K, Q6K};
    let (q, kv) = (s.heads * s.head_dim, s.kv_heads * s.head_dim);
    let wide = fan_in(s.hidden);
    let norm = Recipe::NearOne(0.1);
    let embedding = Recipe::Noise(1.0);
    plan.add("token_embd.weight", Q4K, &[s.hidden, vocab], embedding);
    for i in 0..s.layers {
        let mut add = |name: &str, ty, dims: &[u32], recipe| {
            plan.add(&format!("blk.{i}.{name}.weight"), ty, dims, recipe);
        };
        let finer = if more_bits(i, s.layers) { Q6K } else { Q4K };
        add("attn_norm", F32, &[s.hidden], norm);
        for (name, ty, rows) in [("q", Q4K, q), ("k", Q4K, kv), ("v", finer, kv)] {
            let name = format!("attn_{name}");
            add(&name, ty, &[s.hidden, rows], Recipe::Noise(wide));
        }
        for name in ["attn_q_norm", "attn_k_norm"] {
            add(name, F32, &[s.head_dim], Recipe::NearOne(0.1));
        }
        let out = Recipe::SlowOutput {
            std: fan_in(q),
            gain: if skew > 0.0 { 4.0 } else { 0.0 },
        };
        add("attn_output", Q4K, &[q, s.hidden], out);
        add("ffn_norm", F32, &[s.hidden], norm);
        let router = Recipe::Router { std: wide, skew };
        add("ffn_gate_inp", F32, &[s.hidden, s.experts], router);
        for name in ["ffn_gate_exps", "ffn_up_exps"] {
            let dims = [s.hidden, s.expert_width, s.experts];
            add(name, Q4K, &dims, Recipe::Noise(wide));
        }
        let down = Recipe::Noise(fan_in(s.expert_width));
        let dims = [s.expert_width, s.hidden, s.experts];
        add("ffn_down_exps", finer, &dims, down);
    }
    plan.add("output_norm.weight", F32, &[s.hidden], norm);
    let output = Recipe::Noise(2.0 * wide);
    plan.add("output.weight", Q6K, &[s.hidden, vocab], output);
}

#[cfg(test)]
mod tests {
    use super::more_bits;

    #[test]
    fn layers_with_more_bits_are_llama_cpps() {
        let of = |layers| {
            (0..layers)
                .filter(|i| more_bits(*i, layers))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(4), [2, 3]);
        assert_eq!(of(24), [0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23]);
        assert_eq!(of(48).len(), 24);
    }
}
