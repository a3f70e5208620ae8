"""Writes blocks.json and blocks.bin: quantised bytes and what the `gguf` package makes of them.

For each format: random blocks, blocks quantised from ordinary weights, and blocks with extreme
scales. NaN and infinite scales are left out (MXFP4's e = 255 included): an engine rejects those.
"""

import importlib.metadata
import json
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

HERE = Path(__file__).parent
RANDOM, ORDINARY, K_RANDOM = 160, 64, 24
# Smallest denormal, largest denormal, smallest normal, one, its neighbours, largest; both signs.
F16 = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x3BFF, 0x3C00, 0x3C01, 0xBC00, 0x7BFF, 0xFBFF]
F16_INFINITE, BF16_INFINITE = [0x7C00, 0xFC00], [0x7F80, 0xFF80]
BF16 = [0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x3F7F, 0x3F80, 0x3F81, 0xBF80, 0x7F7F, 0xFF7F]


def random_bytes(rng, count: int, size: int) -> np.ndarray:
    return rng.integers(0, 256, (count, size), dtype=np.uint8)


def finite_f16(words: np.ndarray) -> np.ndarray:
    """Clears one exponent bit where all five are set."""
    return np.where(words & 0x7C00 == 0x7C00, words & ~np.uint16(0x0400), words).astype(np.uint16)


def scaled(rng, kind: Q, scales: int) -> np.ndarray:
    """Blocks that begin with `scales` f16 numbers: random finite ones, then the extremes."""
    size = gguf.GGML_QUANT_SIZES[kind][1]
    extremes = len(F16) * scales
    blocks = random_bytes(rng, RANDOM + extremes, size)
    head = finite_f16(blocks[:, : 2 * scales].copy().view("<u2"))
    for i in range(extremes):
        head[RANDOM + i, i % scales] = F16[i // scales]
    blocks[:, : 2 * scales] = head.view(np.uint8)
    return np.concatenate([blocks, ordinary(rng, kind)])


def ordinary(rng, kind: Q) -> np.ndarray:
    values = (rng.standard_normal((ORDINARY, 32)) * rng.uniform(0.001, 2.0, (ORDINARY, 1))).astype(np.float32)
    return gguf.quantize(values, kind)


def mxfp4(rng) -> np.ndarray:
    blocks = random_bytes(rng, RANDOM + 16, 17)
    blocks[:, 0] = rng.integers(0, 255, len(blocks))
    blocks[RANDOM:, 0] = [0, 1, 2, 3, 26, 27, 28, 100, 126, 127, 128, 129, 200, 252, 253, 254]
    return np.concatenate([blocks, ordinary(rng, Q.MXFP4)])


def k_quants(rng, kind: Q, scales: list[int]) -> np.ndarray:
    """Random super-blocks with f16 numbers at the bytes `scales`: finite ones, then the extremes."""
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = random_bytes(rng, K_RANDOM + len(F16) * len(scales), size)
    for n, at in enumerate(scales):
        head = finite_f16(blocks[:, at : at + 2].copy().view("<u2"))
        head[K_RANDOM + n * len(F16) : K_RANDOM + (n + 1) * len(F16), 0] = F16
        blocks[:, at : at + 2] = head.view(np.uint8)
    return blocks


def words(rng, kind: Q, extremes: list[int], infinite: list[int]) -> np.ndarray:
    """32 two-byte numbers a block; random ones have no NaN and no infinity."""
    top = infinite[0]
    values = rng.integers(0, 1 << 16, (RANDOM, 32)).astype(np.uint16)
    low_bit = np.uint16(top & -top)
    values = np.where(values & top == top, values & ~low_bit, values)
    special = np.resize(np.array(extremes + infinite, np.uint16), (1, 32))
    both = np.concatenate([values, special]).astype("<u2").view(np.uint8)
    plain = (rng.standard_normal((ORDINARY, 32))).astype(np.float32)
    plain = plain.astype("<f2").view(np.uint8) if kind == Q.F16 else gguf.quantize(plain, kind)
    return np.concatenate([both, plain])


def main() -> None:
    rng = np.random.default_rng(15)
    made = [
        (Q.F16, words(rng, Q.F16, F16, F16_INFINITE)),
        (Q.BF16, words(rng, Q.BF16, BF16, BF16_INFINITE)),
        (Q.Q8_0, scaled(rng, Q.Q8_0, 1)),
        (Q.Q4_0, scaled(rng, Q.Q4_0, 1)),
        (Q.Q4_1, scaled(rng, Q.Q4_1, 2)),
        (Q.MXFP4, mxfp4(rng)),
        (Q.Q4_K, k_quants(rng, Q.Q4_K, [0, 2])),
        (Q.Q5_K, k_quants(rng, Q.Q5_K, [0, 2])),
        (Q.Q6_K, k_quants(rng, Q.Q6_K, [208])),
    ]
    body, formats = b"", []
    for kind, blocks in made:
        with np.errstate(over="ignore", invalid="ignore"):
            values = gguf.dequantize(np.ascontiguousarray(blocks), kind).reshape(len(blocks), -1)
        if np.isnan(values).any():
            raise SystemExit(f"{kind.name}: a NaN slipped in")
        formats.append({"format": kind.name, "ggml_type": int(kind), "blocks": len(blocks),
                        "block_values": values.shape[1], "block_bytes": blocks.shape[1], "bytes_at": len(body),
                        "values_at": len(body) + blocks.size})
        body += blocks.tobytes() + values.astype("<f4").tobytes()
    (HERE / "blocks.bin").write_bytes(body)
    header = {"format": 1, "made_by": "make_blocks.py", "gguf": importlib.metadata.version("gguf"), "formats": formats}
    (HERE / "blocks.json").write_text(json.dumps(header, indent=1) + "\n")


if __name__ == "__main__":
    main()
