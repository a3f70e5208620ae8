"""Writes the small random GGUF models of this folder: `python make_models.py [FOLDER]`.

Seeded, so the same versions write the same bytes. The weights mean nothing, but they are scaled so
that logits spread, routings vary, clamps are reached and sinks take weight.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

VOCAB = 512
HARMONY = ["<|startoftext|>", "<|endoftext|>", "<|reserved_2|>", "<|reserved_3|>", "<|return|>", "<|constrain|>",
           "<|reserved_6|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>", "<|reserved_11|>",
           "<|reserved_12|>", "<|reserved_13|>", "<|call|>", "<|reserved_15|>"]
CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


# Of a block of random bytes whose scale is 1: the spread of its weights; then where its f16 scales
# lie, and what each must be for a mean of 0.
K_QUANTS = {
    Q.Q4_K: (257.0, [(0, 1.0), (2, 7.5)]),
    Q.Q5_K: (524.0, [(0, 1.0), (2, 15.5)]),
    Q.Q6_K: (1366.0, [(208, 1.0)]),
}


@dataclass(frozen=True)
class GptOss:
    name: str
    seed: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    experts: int
    width: int
    window: int
    context: int
    yarn_factor: float


@dataclass(frozen=True)
class Llama:
    name: str
    seed: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    width: int
    context: int
    embedding: Q
    output: Q | None  # None: tied to the embedding
    mixed: tuple[Q, ...]  # types of the other matrices, in turn


@dataclass(frozen=True)
class Qwen3Moe:
    name: str
    seed: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    experts: int
    used: int
    width: int
    context: int
    embedding: Q
    output: Q | None  # None: tied to the embedding
    mixed: tuple[Q, ...]  # types of the other matrices, in turn


MODELS = [
    GptOss("gpt-oss-8x4", 11, 4, 64, 4, 2, 64, 8, 64, 16, 16384, 4.0),
    GptOss("gpt-oss-32x2", 12, 2, 96, 4, 1, 64, 32, 32, 128, 131072, 32.0),
    Llama("llama-mixed", 13, 3, 96, 6, 2, 160, 2048, Q.F16, Q.BF16, (Q.Q4_0, Q.Q4_1, Q.F16, Q.Q8_0, Q.BF16, Q.F32)),
    Llama("llama-tied", 14, 3, 128, 4, 4, 256, 2048, Q.Q8_0, None, (Q.Q4_1,)),
    Qwen3Moe("qwen3moe-16x4", 15, 3, 64, 4, 2, 32, 16, 4, 32, 4096, Q.Q8_0, Q.F16, (Q.Q8_0, Q.Q4_1, Q.F16, Q.Q4_0)),
    Qwen3Moe("qwen3moe-k", 16, 1, 256, 4, 2, 64, 4, 2, 256, 4096, Q.Q6_K, None,
             (Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.Q4_K, Q.Q5_K, Q.Q4_K, Q.Q6_K)),
]


def byte_alphabet() -> list[str]:
    """The 256 printable stand-ins for bytes that GPT-2's tokenizer uses, in byte order."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    out, spare = [], 256
    for b in range(256):
        out.append(chr(b) if b in plain else chr(spare))
        spare += b not in plain
    return out


def add_tokenizer(w: gguf.GGUFWriter, pre: str, specials: list[str], eos: str) -> None:
    """Bytes, two-letter merges, then the special tokens at the end."""
    letters = ["\u0120", *"etaoinshrdlcumwfgyp"]
    pairs = [a + b for a in letters for b in letters if b != "\u0120"]
    pairs = pairs[: VOCAB - 256 - len(specials)]
    tokens = byte_alphabet() + pairs + specials
    kinds = [gguf.TokenType.NORMAL] * (VOCAB - len(specials)) + [gguf.TokenType.CONTROL] * len(specials)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types(kinds)
    w.add_token_merges([f"{p[0]} {p[1]}" for p in pairs])
    w.add_bos_token_id(VOCAB - len(specials))
    w.add_eos_token_id(tokens.index(eos))
    w.add_add_bos_token(False)


class Tensors:
    """Draws and adds tensors; `gain` is the spread of the result for an input of spread one."""

    def __init__(self, w: gguf.GGUFWriter, seed: int):
        self.w, self.rng = w, np.random.default_rng(seed)

    def matrix(self, name: str, shape: tuple[int, ...], kind: Q, gain: float = 1.0) -> None:
        if kind in K_QUANTS:
            self.w.add_tensor(name, self.k_blocks(shape, kind, gain / shape[-1] ** 0.5), raw_dtype=kind)
            return
        values = (self.rng.standard_normal(shape) * (gain / shape[-1] ** 0.5)).astype(np.float32)
        if kind in (Q.F32, Q.F16):
            self.w.add_tensor(name, values.astype(np.float32 if kind == Q.F32 else np.float16))
        else:
            self.w.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)

    def k_blocks(self, shape: tuple[int, ...], kind: Q, std: float) -> np.ndarray:
        """Random bytes under scales that give weights of mean 0 and this spread."""
        size = gguf.GGML_QUANT_SIZES[kind][1]
        spread, scales = K_QUANTS[kind]
        blocks = self.rng.integers(0, 256, (*shape[:-1], shape[-1] // 256, size), dtype=np.uint8)
        for at, factor in scales:
            blocks[..., at : at + 2] = np.array([factor * std / spread], "<f2").view(np.uint8)
        return blocks.reshape(*shape[:-1], -1)

    def vector(self, name: str, shape: tuple[int, ...], centre: float, spread: float) -> None:
        self.w.add_tensor(name, (centre + spread * self.rng.standard_normal(shape)).astype(np.float32))


def start(path: Path, arch: str, m: GptOss | Llama | Qwen3Moe) -> gguf.GGUFWriter:
    w = gguf.GGUFWriter(str(path), arch)
    w.add_name(f"Palindrome random test model {m.name}")
    w.add_license("mit or apache-2.0")
    w.add_block_count(m.layers)
    w.add_context_length(m.context)
    w.add_embedding_length(m.hidden)
    w.add_head_count(m.heads)
    w.add_head_count_kv(m.kv_heads)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_feed_forward_length(m.width)
    w.add_vocab_size(VOCAB)
    return w


def finish(w: gguf.GGUFWriter) -> None:
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_gpt_oss(path: Path, m: GptOss) -> None:
    w = start(path, "gpt-oss", m)
    w.add_key_length(m.head_dim)
    w.add_value_length(m.head_dim)
    w.add_sliding_window(m.window)
    w.add_expert_count(m.experts)
    w.add_expert_used_count(4)
    w.add_expert_feed_forward_length(m.width)
    w.add_rope_freq_base(150000.0)
    w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    w.add_rope_scaling_factor(m.yarn_factor)
    w.add_rope_scaling_orig_ctx_len(4096)
    add_tokenizer(w, "gpt-4o", HARMONY, "<|return|>")
    t = Tensors(w, m.seed)
    q, kv = m.heads * m.head_dim, m.kv_heads * m.head_dim
    t.matrix("token_embd.weight", (VOCAB, m.hidden), Q.Q8_0, gain=m.hidden**0.5)
    for i in range(m.layers):
        b = f"blk.{i}."
        t.vector(b + "attn_norm.weight", (m.hidden,), 1.0, 0.2)
        for name, out in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
            t.matrix(b + name + ".weight", (out, m.hidden), Q.Q8_0, gain=1.4)
            t.vector(b + name + ".bias", (out,), 0.0, 0.3)
        t.matrix(b + "attn_output.weight", (m.hidden, q), Q.Q8_0)
        t.vector(b + "attn_output.bias", (m.hidden,), 0.0, 0.1)
        t.vector(b + "attn_sinks.weight", (m.heads,), 1.0, 1.5)
        t.vector(b + "post_attention_norm.weight", (m.hidden,), 1.0, 0.2)
        t.matrix(b + "ffn_gate_inp.weight", (m.experts, m.hidden), Q.F32, gain=2.0)
        t.vector(b + "ffn_gate_inp.bias", (m.experts,), 0.0, 0.5)
        # A gain of 3 puts a few percent of gate and up values beyond the clamp at 7.
        for name, out, inner, gain in (("gate", m.width, m.hidden, 3.0), ("up", m.width, m.hidden, 3.0), ("down", m.hidden, m.width, 0.3)):
            t.matrix(b + f"ffn_{name}_exps.weight", (m.experts, out, inner), Q.MXFP4, gain)
            t.vector(b + f"ffn_{name}_exps.bias", (m.experts, out), 0.0, 0.2)
    t.vector("output_norm.weight", (m.hidden,), 1.0, 0.2)
    t.matrix("output.weight", (VOCAB, m.hidden), Q.Q8_0, gain=3.0)
    finish(w)


def write_llama(path: Path, m: Llama) -> None:
    w = start(path, "llama", m)
    w.add_rope_dimension_count(m.hidden // m.heads)
    w.add_rope_freq_base(10000.0)
    add_tokenizer(w, "smollm", CHATML, "<|im_end|>")
    t = Tensors(w, m.seed)
    kinds = iter(m.mixed * (7 * m.layers))
    kv = m.hidden // m.heads * m.kv_heads
    tied = m.output is None
    t.matrix("token_embd.weight", (VOCAB, m.hidden), m.embedding, gain=3.0 if tied else m.hidden**0.5)
    for i in range(m.layers):
        b = f"blk.{i}."
        t.vector(b + "attn_norm.weight", (m.hidden,), 1.0, 0.2)
        for name, out, inner, gain in (("attn_q", m.hidden, m.hidden, 1.5), ("attn_k", kv, m.hidden, 1.5),
                                       ("attn_v", kv, m.hidden, 1.0), ("attn_output", m.hidden, m.hidden, 1.0)):
            t.matrix(b + name + ".weight", (out, inner), next(kinds), gain)
        t.vector(b + "ffn_norm.weight", (m.hidden,), 1.0, 0.2)
        for name, out, inner in (("gate", m.width, m.hidden), ("up", m.width, m.hidden), ("down", m.hidden, m.width)):
            t.matrix(b + f"ffn_{name}.weight", (out, inner), next(kinds), 1.2)
    t.vector("output_norm.weight", (m.hidden,), 1.0, 0.2)
    if not tied:
        t.matrix("output.weight", (VOCAB, m.hidden), m.output, gain=3.0)
    finish(w)


def write_qwen3_moe(path: Path, m: Qwen3Moe) -> None:
    w = start(path, "qwen3moe", m)
    w.add_key_length(m.head_dim)
    w.add_value_length(m.head_dim)
    w.add_expert_count(m.experts)
    w.add_expert_used_count(m.used)
    w.add_expert_feed_forward_length(m.width)
    w.add_rope_freq_base(1000000.0)
    add_tokenizer(w, "qwen2", CHATML, "<|im_end|>")
    t = Tensors(w, m.seed)
    kinds = iter(m.mixed * (7 * m.layers))
    q, kv = m.heads * m.head_dim, m.kv_heads * m.head_dim
    tied = m.output is None
    t.matrix("token_embd.weight", (VOCAB, m.hidden), m.embedding, gain=3.0 if tied else m.hidden**0.5)
    for i in range(m.layers):
        b = f"blk.{i}."
        t.vector(b + "attn_norm.weight", (m.hidden,), 1.0, 0.2)
        for name, out, inner in (("attn_q", q, m.hidden), ("attn_k", kv, m.hidden), ("attn_v", kv, m.hidden), ("attn_output", m.hidden, q)):
            t.matrix(b + name + ".weight", (out, inner), next(kinds))
        for name in ("attn_q_norm", "attn_k_norm"):
            t.vector(b + name + ".weight", (m.head_dim,), 1.4, 0.3)
        t.vector(b + "ffn_norm.weight", (m.hidden,), 1.0, 0.2)
        t.matrix(b + "ffn_gate_inp.weight", (m.experts, m.hidden), Q.F32, gain=2.0)
        for name, out, inner in (("gate", m.width, m.hidden), ("up", m.width, m.hidden), ("down", m.hidden, m.width)):
            t.matrix(b + f"ffn_{name}_exps.weight", (m.experts, out, inner), next(kinds), 1.4)
    t.vector("output_norm.weight", (m.hidden,), 1.0, 0.2)
    if not tied:
        t.matrix("output.weight", (VOCAB, m.hidden), m.output, gain=3.0)
    finish(w)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for m in MODELS:
        path = folder / f"{m.name}.gguf"
        {GptOss: write_gpt_oss, Llama: write_llama, Qwen3Moe: write_qwen3_moe}[type(m)](path, m)
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
