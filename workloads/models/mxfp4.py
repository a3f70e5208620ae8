"""MXFP4 as GGUF stores it: 32 weights share a power of two, each weight is a 4-bit float.

`nearest` is used in training (fake quantisation) and `pack` in the export, on the same codes, so
what is written is what training saw.
"""

import numpy as np
import torch

BLOCK = 32
LARGEST = 6.0  # of the grid 0 0.5 1 1.5 2 3 4 6
GRID = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def _round(x: torch.Tensor) -> torch.Tensor:
    """Rounds to the grid; ties go to the even multiple of the local step."""
    a = x.abs().clamp_(max=LARGEST)
    step = torch.full_like(a, 0.5)
    step[a > 2] = 1.0
    step[a > 4] = 2.0
    return (a / step).round_().mul_(step).copysign_(x)


@torch.no_grad()
def nearest(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(w on its MXFP4 grid, the power-of-two exponent of each block).

    Of the two sensible exponents (largest weight clipped to 6, or not clipped) the one with the
    smaller squared error wins.
    """
    b = w.reshape(-1, BLOCK)
    top = b.abs().amax(1, keepdim=True).clamp_min(2.0**-100)
    low = torch.floor(torch.log2(top)) - 2
    s0, s1 = torch.exp2(low), torch.exp2(low + 1)
    q0, q1 = _round(b / s0).mul_(s0), _round(b / s1).mul_(s1)
    e0, e1 = (q0 - b).square_().sum(1, keepdim=True), (q1 - b).square_().sum(1, keepdim=True)
    up = e1 < e0
    return torch.where(up, q1, q0).reshape(w.shape), (low + up).reshape(*w.shape[:-1], -1)


class FakeQuant(torch.autograd.Function):
    """MXFP4 on the way forward, the identity on the way back (straight-through)."""

    @staticmethod
    def forward(ctx, w):
        return nearest(w)[0]

    @staticmethod
    def backward(ctx, g):
        return g


def pack(w: torch.Tensor) -> np.ndarray:
    """The GGUF bytes, [..., row length / 32 * 17]."""
    q, exponent = nearest(w.float())
    e = exponent.numpy().reshape(-1)
    blocks = q.numpy().reshape(-1, BLOCK) / np.exp2(e)[:, None]
    code = np.searchsorted(GRID, np.abs(blocks)).astype(np.uint8)
    if not np.array_equal(GRID[code], np.abs(blocks)):
        raise ValueError("a weight is not on the MXFP4 grid")
    code |= (np.signbit(blocks) & (code > 0)).astype(np.uint8) << 3
    out = np.empty((len(blocks), 17), np.uint8)
    out[:, 0] = (e + 127).astype(np.uint8)
    out[:, 1:] = code[:, :16] | (code[:, 16:] << 4)
    return out.reshape(*w.shape[:-1], -1)
