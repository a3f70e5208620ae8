"""Writes the reference logits of this folder: `python make_golden.py [CASE ...]`.

A case is a GGUF file and token ids. The file is read and dequantised with the `gguf` package, the
float32 weights go into transformers' own model (CPU, eager attention), and one pass over the whole
sequence gives the logits. Nothing of the engine takes part, so agreement means something.

Written for each case: NAME.json (see README.md) and NAME.bin, the full logits at chosen positions
as little-endian float32, one position after the other in the order of the JSON's `positions`.
"""

import hashlib
import importlib.metadata
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers

import texts

HERE = Path(__file__).parent
SHIPPED = Path("workloads/models/palindrome-small.gguf")
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class Case:
    name: str
    file: str  # beside this script, under the repository, or in $PALINDROME_SMOLLM2
    tokens: int | str  # so many random ids, or a text
    keep: int = 16  # positions with full logits


CASES = [
    Case("gpt-oss-8x4", "gpt-oss-8x4.gguf", 120),
    Case("gpt-oss-32x2", "gpt-oss-32x2.gguf", 400),
    Case("llama-mixed", "llama-mixed.gguf", 96),
    Case("llama-tied", "llama-tied.gguf", 96),
    Case("qwen3moe-16x4", "qwen3moe-16x4.gguf", 128),
    Case("qwen3moe-k", "qwen3moe-k.gguf", 96),
    Case("shipped-short", str(SHIPPED), texts.CHAT),
    Case("shipped-long", str(SHIPPED), texts.CODE),
    Case("smollm2-135m", SMOLLM2, texts.PROSE, keep=4),
]


class Gguf:
    """Keys and dequantised tensors of one file."""

    def __init__(self, path: Path):
        self.reader = gguf.GGUFReader(str(path))
        self.arch = self.key("general.architecture")
        self.tensors = {t.name: t for t in self.reader.tensors}

    def key(self, name: str, default=None):
        field = self.reader.fields.get(name)
        return default if field is None else field.contents()

    def own(self, name: str, default=None):
        return self.key(f"{self.arch}.{name}", default)

    def __getitem__(self, name: str) -> torch.Tensor:
        t = self.tensors[name]
        values = gguf.dequantize(t.data, t.tensor_type).astype(np.float32)
        return torch.from_numpy(values.reshape([int(n) for n in reversed(t.shape)]).copy())


def gpt_oss(g: Gguf) -> torch.nn.Module:
    context = g.own("context_length")
    config = transformers.GptOssConfig(
        vocab_size=g.tensors["token_embd.weight"].shape[1].item(),
        num_hidden_layers=g.own("block_count"), hidden_size=g.own("embedding_length"),
        intermediate_size=g.own("expert_feed_forward_length"),
        num_local_experts=g.own("expert_count"), num_experts_per_tok=g.own("expert_used_count"),
        num_attention_heads=g.own("attention.head_count"), num_key_value_heads=g.own("attention.head_count_kv"),
        head_dim=g.own("attention.key_length"), sliding_window=g.own("attention.sliding_window"),
        max_position_embeddings=context, rms_norm_eps=g.own("attention.layer_norm_rms_epsilon"),
        rope_parameters={
            "rope_type": "yarn", "rope_theta": g.own("rope.freq_base"), "factor": g.own("rope.scaling.factor"),
            "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
            "original_max_position_embeddings": g.own("rope.scaling.original_context_length"),
        },
    )
    model = empty(transformers.GptOssForCausalLM, config)
    state = {"model.embed_tokens.weight": g["token_embd.weight"], "model.norm.weight": g["output_norm.weight"],
             "lm_head.weight": g["output.weight"]}
    for i in range(config.num_hidden_layers):
        to, b = f"model.layers.{i}.", f"blk.{i}."
        state[to + "input_layernorm.weight"] = g[b + "attn_norm.weight"]
        state[to + "post_attention_layernorm.weight"] = g[b + "post_attention_norm.weight"]
        for ours, theirs in (("attn_q", "q_proj"), ("attn_k", "k_proj"), ("attn_v", "v_proj"), ("attn_output", "o_proj")):
            for kind in ("weight", "bias"):
                state[f"{to}self_attn.{theirs}.{kind}"] = g[f"{b}{ours}.{kind}"]
        state[to + "self_attn.sinks"] = g[b + "attn_sinks.weight"]
        for kind in ("weight", "bias"):
            state[f"{to}mlp.router.{kind}"] = g[f"{b}ffn_gate_inp.{kind}"]
        # transformers keeps gate and up interleaved (even, odd) and [in, out].
        gate, up = g[b + "ffn_gate_exps.weight"], g[b + "ffn_up_exps.weight"]
        state[to + "mlp.experts.gate_up_proj"] = torch.stack([gate, up], 2).flatten(1, 2).transpose(1, 2).contiguous()
        gate, up = g[b + "ffn_gate_exps.bias"], g[b + "ffn_up_exps.bias"]
        state[to + "mlp.experts.gate_up_proj_bias"] = torch.stack([gate, up], 2).flatten(1, 2)
        state[to + "mlp.experts.down_proj"] = g[b + "ffn_down_exps.weight"].transpose(1, 2).contiguous()
        state[to + "mlp.experts.down_proj_bias"] = g[b + "ffn_down_exps.bias"]
    model.load_state_dict(state, strict=True)
    return model


def llama(g: Gguf) -> torch.nn.Module:
    tied = "output.weight" not in g.tensors
    heads, kv_heads = g.own("attention.head_count"), g.own("attention.head_count_kv")
    config = transformers.LlamaConfig(
        vocab_size=g.tensors["token_embd.weight"].shape[1].item(),
        num_hidden_layers=g.own("block_count"), hidden_size=g.own("embedding_length"),
        intermediate_size=g.own("feed_forward_length"), num_attention_heads=heads, num_key_value_heads=kv_heads,
        max_position_embeddings=g.own("context_length"), rms_norm_eps=g.own("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": g.own("rope.freq_base", 10000.0)},
        tie_word_embeddings=tied, attention_bias=False, mlp_bias=False,
    )

    def halves(w: torch.Tensor, n: int) -> torch.Tensor:
        """GGUF has a head's rotary pairs side by side; transformers has them half a head apart."""
        return w.view(n, w.shape[0] // n // 2, 2, -1).transpose(1, 2).reshape(w.shape)

    model = empty(transformers.LlamaForCausalLM, config)
    state = {"model.embed_tokens.weight": g["token_embd.weight"], "model.norm.weight": g["output_norm.weight"],
             "lm_head.weight": g["token_embd.weight" if tied else "output.weight"]}
    for i in range(config.num_hidden_layers):
        to, b = f"model.layers.{i}.", f"blk.{i}."
        state[to + "input_layernorm.weight"] = g[b + "attn_norm.weight"]
        state[to + "post_attention_layernorm.weight"] = g[b + "ffn_norm.weight"]
        state[to + "self_attn.q_proj.weight"] = halves(g[b + "attn_q.weight"], heads)
        state[to + "self_attn.k_proj.weight"] = halves(g[b + "attn_k.weight"], kv_heads)
        state[to + "self_attn.v_proj.weight"] = g[b + "attn_v.weight"]
        state[to + "self_attn.o_proj.weight"] = g[b + "attn_output.weight"]
        for name in ("gate", "up", "down"):
            state[f"{to}mlp.{name}_proj.weight"] = g[f"{b}ffn_{name}.weight"]
    model.load_state_dict(state, strict=True)
    return model


def qwen3_moe(g: Gguf) -> torch.nn.Module:
    tied = "output.weight" not in g.tensors
    config = transformers.Qwen3MoeConfig(
        vocab_size=g.tensors["token_embd.weight"].shape[1].item(),
        num_hidden_layers=g.own("block_count"), hidden_size=g.own("embedding_length"),
        moe_intermediate_size=g.own("expert_feed_forward_length"),
        num_experts=g.own("expert_count"), num_experts_per_tok=g.own("expert_used_count"), norm_topk_prob=True,
        num_attention_heads=g.own("attention.head_count"), num_key_value_heads=g.own("attention.head_count_kv"),
        head_dim=g.own("attention.key_length"), max_position_embeddings=g.own("context_length"),
        rms_norm_eps=g.own("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": g.own("rope.freq_base")},
        tie_word_embeddings=tied, attention_bias=False,
    )
    model = empty(transformers.Qwen3MoeForCausalLM, config)
    state = {"model.embed_tokens.weight": g["token_embd.weight"], "model.norm.weight": g["output_norm.weight"],
             "lm_head.weight": g["token_embd.weight" if tied else "output.weight"]}
    names = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
             "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate": "ffn_gate_inp"}
    for i in range(config.num_hidden_layers):
        to, b = f"model.layers.{i}.", f"blk.{i}."
        for theirs, ours in names.items():
            state[f"{to}{theirs}.weight"] = g[f"{b}{ours}.weight"]
        # transformers keeps an expert's gate and up in one matrix, one after the other.
        gate, up = g[b + "ffn_gate_exps.weight"], g[b + "ffn_up_exps.weight"]
        state[to + "mlp.experts.gate_up_proj"] = torch.cat([gate, up], 1)
        state[to + "mlp.experts.down_proj"] = g[b + "ffn_down_exps.weight"]
    model.load_state_dict(state, strict=True)
    return model


def empty(kind, config) -> torch.nn.Module:
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    model = kind(config).float().eval()
    if model.config._attn_implementation != "eager":
        raise SystemExit("transformers did not take the eager attention")
    return model


def router_margins(model) -> tuple[list, list]:
    """Hooks that collect, for each layer, how far the last chosen expert is above the next one."""
    gaps, hooks = [], []
    for name, module in model.named_modules():
        if name.endswith((".router", ".mlp.gate")):
            k = module.top_k

            def keep(_module, _inputs, out, k=k):
                best = out[0].topk(k + 1, -1).values
                gaps.append(best[:, k - 1] - best[:, k])

            hooks.append(module.register_forward_hook(keep))
    return gaps, hooks


def chosen_positions(length: int, keep: int) -> list[int]:
    """The first few, the last, and evenly spread ones between."""
    few = list(range(min(3, keep // 4)))
    rest = np.linspace(few[-1] + 1, length - 1, keep - len(few)).round().astype(int).tolist()
    return sorted(set(few + rest))


def find(file: str) -> Path | None:
    for path in (HERE / file, HERE.parents[2] / file, Path(os.environ.get("PALINDROME_SMOLLM2", "")) / file):
        if path.is_file():
            return path
    return None


def make(case: Case, path: Path) -> None:
    g = Gguf(path)
    model = {"gpt-oss": gpt_oss, "llama": llama, "qwen3moe": qwen3_moe}[g.arch](g)
    if isinstance(case.tokens, int):
        plain = len(g.key("tokenizer.ggml.tokens")) - 16
        tokens = np.random.default_rng(case.tokens).integers(0, plain, case.tokens).tolist()
    else:
        tokens = texts.encode(g, case.tokens)
    gaps, hooks = router_margins(model)
    with torch.no_grad():
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0].float()
    for hook in hooks:
        hook.remove()
    best = logits.topk(2, -1)
    positions = chosen_positions(len(tokens), case.keep)
    (HERE / f"{case.name}.bin").write_bytes(logits[positions].numpy().astype("<f4").tobytes())
    header = {
        "format": 1,
        "case": case.name,
        "model": case.file,
        "model_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "made_by": "make_golden.py",
        "versions": {p: importlib.metadata.version(p) for p in ("torch", "transformers", "gguf", "numpy", "tokenizers")},
        "vocab": logits.shape[1],
        "tokens": tokens,
        "positions": positions,
        "top1": best.indices[:, 0].tolist(),
        "top1_logit": rounded(best.values[:, 0]),
        "margin": rounded(best.values[:, 0] - best.values[:, 1]),
    }
    if gaps:
        header["router_margin"] = rounded(torch.stack(gaps).amin(0))
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in header.items()]
    (HERE / f"{case.name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(case.name, len(tokens), "tokens; logits spread", round(logits.std(-1).mean().item(), 3),
          "; smallest margin", min(header["margin"]), "; distinct top-1", len(set(header["top1"])))


def rounded(t: torch.Tensor) -> list[float]:
    return [float(f"{v:.6g}") for v in t.tolist()]


def main() -> None:
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    for case in CASES:
        if wanted and case.name not in wanted:
            continue
        path = find(case.file)
        if path is None:
            print(f"{case.name}: {case.file} is not here, left as it is", file=sys.stderr)
        else:
            make(case, path)


if __name__ == "__main__":
    main()
