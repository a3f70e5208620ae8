"""Writes a checkpoint as GGUF: `python export.py RUN_FOLDER/final.pt palindrome-small.gguf`.

Experts become MXFP4 on the grid they were trained on, the other matrices Q8_0, and routers, norms,
biases and sinks stay F32. Every packed tensor is read back and compared.
"""

import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Q

import mxfp4
import tokenizer
from model import Config

HERE = Path(__file__).parent
NAME = "Palindrome small"


class Writer:
    """Adds tensors in the three kinds that the file uses."""

    def __init__(self, gguf_writer: gguf.GGUFWriter):
        self.w = gguf_writer

    def f32(self, name: str, t: torch.Tensor):
        self.w.add_tensor(name, t.float().contiguous().numpy())

    def q8_0(self, name: str, t: torch.Tensor):
        self.w.add_tensor(name, gguf.quantize(t.float().contiguous().numpy(), Q.Q8_0), raw_dtype=Q.Q8_0)

    def mxfp4(self, name: str, t: torch.Tensor):
        packed = mxfp4.pack(t)
        if not np.array_equal(gguf.dequantize(packed, Q.MXFP4), mxfp4.nearest(t)[0].numpy()):
            raise SystemExit(f"{name}: the packed weights do not read back as they should")
        self.w.add_tensor(name, packed, raw_dtype=Q.MXFP4)


def add_keys(w: gguf.GGUFWriter, cfg: Config):
    w.add_name(NAME)
    w.add_description("A small gpt-oss model trained on Python's standard library, for tests and benchmarks of servers.")
    w.add_license("psf-2.0")
    w.add_license_name("Trained on Python's standard library (PSF-2.0); see MODEL_CARD.md")
    w.add_quantization_version(2)
    w.add_file_type(38)  # MXFP4 experts
    w.add_block_count(cfg.layers)
    w.add_context_length(cfg.context)
    w.add_embedding_length(cfg.hidden)
    w.add_feed_forward_length(cfg.expert_width)
    w.add_vocab_size(cfg.vocab)
    w.add_head_count(cfg.heads)
    w.add_head_count_kv(cfg.kv_heads)
    w.add_key_length(cfg.head_dim)
    w.add_value_length(cfg.head_dim)
    w.add_layer_norm_rms_eps(cfg.eps)
    w.add_sliding_window(cfg.window)
    w.add_expert_count(cfg.experts)
    w.add_expert_used_count(cfg.top_k)
    w.add_expert_feed_forward_length(cfg.expert_width)
    w.add_rope_freq_base(cfg.rope_base)
    w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    w.add_rope_scaling_factor(cfg.yarn_factor)
    w.add_rope_scaling_orig_ctx_len(cfg.yarn_original)


def add_tokenizer(w: gguf.GGUFWriter, tok):
    vocab = {i: t for t, i in tok.get_vocab().items()}
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-4o")
    w.add_token_list([vocab[i] for i in range(len(vocab))])
    w.add_token_types([gguf.TokenType.NORMAL] * tokenizer.FIRST_SPECIAL
                      + [gguf.TokenType.CONTROL] * len(tokenizer.SPECIALS))
    w.add_token_merges(tokenizer.merges(tok))
    w.add_bos_token_id(tokenizer.ID["<|startoftext|>"])
    w.add_eos_token_id(tokenizer.ID["<|return|>"])
    w.add_pad_token_id(tokenizer.ID["<|endoftext|>"])
    w.add_add_bos_token(False)
    w.add_chat_template((HERE / "chat_template.jinja").read_text())


def export(checkpoint: Path, out: Path):
    saved = torch.load(checkpoint, weights_only=True)
    cfg, state = Config(**saved["config"]), saved["model"]
    gw = gguf.GGUFWriter(str(out), "gpt-oss")
    add_keys(gw, cfg)
    add_tokenizer(gw, tokenizer.load(checkpoint.parent / "tokenizer.json"))
    w = Writer(gw)
    w.q8_0("token_embd.weight", state["embed.weight"])
    for i in range(cfg.layers):
        s, b = f"layers.{i}.", f"blk.{i}."
        w.f32(b + "attn_norm.weight", state[s + "attn_norm.weight"])
        for ours, theirs in (("q", "attn_q"), ("k", "attn_k"), ("v", "attn_v"), ("o", "attn_output")):
            w.q8_0(f"{b}{theirs}.weight", state[f"{s}attn.{ours}.weight"])
            w.f32(f"{b}{theirs}.bias", state[f"{s}attn.{ours}.bias"])
        w.f32(b + "attn_sinks.weight", state[s + "attn.sinks"])
        w.f32(b + "post_attention_norm.weight", state[s + "ffn_norm.weight"])
        w.f32(b + "ffn_gate_inp.weight", state[s + "experts.router.weight"])
        w.f32(b + "ffn_gate_inp.bias", state[s + "experts.router.bias"])
        gate, up = state[s + "experts.gate_up"].chunk(2, 1)
        gate_bias, up_bias = state[s + "experts.gate_up_bias"].chunk(2, 1)
        down, down_bias = state[s + "experts.down"], state[s + "experts.down_bias"]
        for name, weight, bias in (("gate", gate, gate_bias), ("up", up, up_bias), ("down", down, down_bias)):
            w.mxfp4(f"{b}ffn_{name}_exps.weight", weight.contiguous())
            w.f32(f"{b}ffn_{name}_exps.bias", bias)
    w.f32("output_norm.weight", state["norm.weight"])
    w.q8_0("output.weight", state["output.weight"])
    gw.write_header_to_file()
    gw.write_kv_data_to_file()
    gw.write_tensors_to_file()
    gw.close()
    print(f"{out}: {out.stat().st_size} bytes, {saved['tokens']} tokens seen")


if __name__ == "__main__":
    export(Path(sys.argv[1]), Path(sys.argv[2]))
