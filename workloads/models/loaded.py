"""Reads an exported GGUF back into the torch model, so that figures are those of the file."""

from pathlib import Path

import gguf
import numpy as np
import torch

from model import Config, GptOss


def load(path: Path) -> GptOss:
    """The model with the file's dequantised weights, in float32."""
    reader = gguf.GGUFReader(str(path))
    tensors = {t.name: t for t in reader.tensors}

    def key(name):
        return reader.fields[f"gpt-oss.{name}"].contents()

    def get(name):
        t = tensors[name]
        shape = [int(n) for n in reversed(t.shape)]
        return torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).reshape(shape).astype(np.float32))

    cfg = Config(
        vocab=len(reader.fields["tokenizer.ggml.tokens"].data), layers=key("block_count"),
        hidden=key("embedding_length"), heads=key("attention.head_count"), kv_heads=key("attention.head_count_kv"),
        head_dim=key("attention.key_length"), experts=key("expert_count"), top_k=key("expert_used_count"),
        expert_width=key("expert_feed_forward_length"), window=key("attention.sliding_window"),
        context=key("context_length"), rope_base=key("rope.freq_base"), yarn_factor=key("rope.scaling.factor"),
        yarn_original=key("rope.scaling.original_context_length"), eps=key("attention.layer_norm_rms_epsilon"),
    )
    state = {"embed.weight": get("token_embd.weight"), "norm.weight": get("output_norm.weight"),
             "output.weight": get("output.weight")}
    for i in range(cfg.layers):
        s, b = f"layers.{i}.", f"blk.{i}."
        state[s + "attn_norm.weight"] = get(b + "attn_norm.weight")
        state[s + "ffn_norm.weight"] = get(b + "post_attention_norm.weight")
        state[s + "attn.sinks"] = get(b + "attn_sinks.weight")
        for ours, theirs in (("q", "attn_q"), ("k", "attn_k"), ("v", "attn_v"), ("o", "attn_output")):
            for kind in ("weight", "bias"):
                state[f"{s}attn.{ours}.{kind}"] = get(f"{b}{theirs}.{kind}")
        for kind, tail in (("weight", ""), ("bias", "_bias")):
            state[f"{s}experts.router.{kind}"] = get(f"{b}ffn_gate_inp.{kind}")
            state[f"{s}experts.gate_up{tail}"] = torch.cat([get(f"{b}ffn_{n}_exps.{kind}") for n in ("gate", "up")], 1)
            state[f"{s}experts.down{tail}"] = get(f"{b}ffn_down_exps.{kind}")
    model = GptOss(cfg)
    model.load_state_dict(state, strict=True)
    return model.eval()
