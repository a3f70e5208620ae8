"""gpt-oss in plain torch, small enough to train on a CPU.

The same function as the big one: RMS norms, grouped-query attention with sinks, every other layer
behind a sliding window, YaRN, a biased router with top-k, clamped SwiGLU experts with biases.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from mxfp4 import FakeQuant


@dataclass(frozen=True)
class Config:
    vocab: int = 4096
    layers: int = 4
    hidden: int = 192
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    experts: int = 32
    top_k: int = 4
    expert_width: int = 128
    window: int = 128
    context: int = 16384
    rope_base: float = 150000.0
    yarn_factor: float = 4.0
    yarn_original: int = 4096
    eps: float = 1e-5


def yarn(cfg: Config, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin, [length, head_dim / 2], with the unrounded ramp and YaRN's magnitude."""
    half = cfg.head_dim // 2
    plain = cfg.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)

    def pair_at(turns):
        return half * math.log(cfg.yarn_original / (turns * 2 * math.pi)) / math.log(cfg.rope_base)

    low, high = pair_at(32.0), pair_at(1.0)
    ramp = ((torch.arange(half, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    freq = plain / cfg.yarn_factor * ramp + plain * (1 - ramp)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * freq
    scale = 0.1 * math.log(cfg.yarn_factor) + 1.0
    return (angle.cos() * scale).float(), (angle.sin() * scale).float()


class ExpertRows(torch.autograd.Function):
    """All experts on rows sorted by expert: one expert at a time, so its rows stay in cache.

    `token` names the row of x that each sorted row reads. Backward is written out by hand because
    autograd through slices of one big weight would be several times slower on a CPU.
    """

    @staticmethod
    def forward(ctx, x, gate_up, gate_up_bias, down, down_bias, token, counts):
        y, hidden, bounds, start = x.new_empty(len(token), down.shape[1]), [], [], 0
        for e, n in enumerate(counts):
            bounds.append(slice(start, start + n))
            start += n
            gu = torch.addmm(gate_up_bias[e], x[token[bounds[e]]], gate_up[e].t())
            hidden.append(gu)
            torch.addmm(down_bias[e], swiglu(gu)[0], down[e].t(), out=y[bounds[e]])
        ctx.save_for_backward(x, gate_up, down, token)
        ctx.hidden, ctx.bounds = hidden, bounds
        return y

    @staticmethod
    def backward(ctx, dy):
        x, gate_up, down, token = ctx.saved_tensors
        dx = torch.zeros_like(x)
        d_gate_up, d_down = torch.zeros_like(gate_up), torch.zeros_like(down)
        d_gate_up_bias, d_down_bias = gate_up.new_zeros(gate_up.shape[:2]), down.new_zeros(down.shape[:2])
        for e, rows in enumerate(ctx.bounds):
            if rows.start == rows.stop:
                continue
            h, g, u, s, gu = *swiglu(ctx.hidden[e]), ctx.hidden[e]
            d = dy[rows]
            torch.mm(d.t(), h, out=d_down[e])
            torch.sum(d, 0, out=d_down_bias[e])
            dh = d @ down[e]
            f = g.shape[1]
            dgu = torch.empty_like(gu)
            # h = g s(1.702 g) (u + 1), with g and u clamped
            dgu[:, :f] = dh * (u + 1) * s * (1 + 1.702 * g * (1 - s)) * (gu[:, :f] <= 7.0)
            dgu[:, f:] = dh * g * s * (gu[:, f:].abs() <= 7.0)
            at = token[rows]
            torch.mm(dgu.t(), x[at], out=d_gate_up[e])
            torch.sum(dgu, 0, out=d_gate_up_bias[e])
            dx.index_add_(0, at, dgu @ gate_up[e])
        ctx.hidden = None
        return dx, d_gate_up, d_gate_up_bias, d_down, d_down_bias, None, None


def swiglu(gate_up):
    """(the product, clamped gate, clamped up, sigmoid) of [gate | up] rows."""
    g, u = gate_up.chunk(2, -1)
    g, u = g.clamp(max=7.0), u.clamp(-7.0, 7.0)
    s = torch.sigmoid(1.702 * g)
    return g * s * (u + 1), g, u, s


class Permute(torch.autograd.Function):
    """x[order], whose backward is a gather by the inverse order."""

    @staticmethod
    def forward(ctx, x, order, inverse):
        ctx.save_for_backward(inverse)
        return x[order]

    @staticmethod
    def backward(ctx, g):
        return g[ctx.saved_tensors[0]], None, None


class OutputLoss(torch.autograd.Function):
    """Mean cross entropy of x W^T, in row chunks; gradients are made in the same pass.

    Rows whose target is -1 do not count.
    """

    @staticmethod
    def forward(ctx, x, w, target, chunk=256):
        dx, dw, loss = torch.empty_like(x), torch.zeros_like(w), 0.0
        counted = (target >= 0).sum().clamp_min(1)
        for i in range(0, len(x), chunk):
            xs, t = x[i : i + chunk], target[i : i + chunk, None]
            weight = (t >= 0) / counted
            t = t.clamp_min(0)
            logits = xs @ w.t()
            logits -= logits.amax(1, keepdim=True)
            picked = logits.gather(1, t)
            total = logits.exp_().sum(1, keepdim=True)
            loss += ((total.log() - picked) * weight).sum()
            p = logits.mul_(weight / total)
            p.scatter_add_(1, t, -weight)
            torch.mm(p, w, out=dx[i : i + chunk])
            dw.addmm_(p.t(), xs)
        ctx.save_for_backward(dx, dw)
        return loss

    @staticmethod
    def backward(ctx, g):
        dx, dw = ctx.saved_tensors
        return dx * g, dw * g, None, None


class Attention(nn.Module):
    def __init__(self, cfg: Config, windowed: bool):
        super().__init__()
        self.cfg, self.windowed = cfg, windowed
        q, kv = cfg.heads * cfg.head_dim, cfg.kv_heads * cfg.head_dim
        self.q, self.k, self.v = nn.Linear(cfg.hidden, q), nn.Linear(cfg.hidden, kv), nn.Linear(cfg.hidden, kv)
        self.o = nn.Linear(q, cfg.hidden)
        self.sinks = nn.Parameter(torch.zeros(cfg.heads))

    def forward(self, x, cos, sin):
        cfg, (b, t, _) = self.cfg, x.shape
        q = rotate(self.q(x).view(b, t, cfg.heads, cfg.head_dim), cos, sin).transpose(1, 2)
        k = rotate(self.k(x).view(b, t, cfg.kv_heads, cfg.head_dim), cos, sin).transpose(1, 2)
        v = self.v(x).view(b, t, cfg.kv_heads, cfg.head_dim).transpose(1, 2)
        group = cfg.heads // cfg.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scale = cfg.head_dim**-0.5
        if self.windowed and t > cfg.window:
            y = windowed_attention(q, k, v, self.sinks, cfg.window, scale)
        else:
            y = attention(q, k, v, self.sinks, scale)
        return self.o(y.transpose(1, 2).reshape(b, t, -1))


def rotate(x, cos, sin):
    """NEOX pairs (i, i + half) of x [b, t, heads, head_dim]."""
    a, b = x.chunk(2, -1)
    c, s = cos[: x.shape[1], None], sin[: x.shape[1], None]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def sink_softmax(scores, sinks, mask):
    """Softmax over keys plus one sink logit a head, which takes weight and gives no value."""
    scores = scores.masked_fill(mask, -1e30)
    sink = sinks.view(1, -1, *[1] * (scores.dim() - 2)).expand(*scores.shape[:-1], 1)
    return torch.cat([scores, sink], -1).softmax(-1)[..., :-1]


def attention(q, k, v, sinks, scale, rows=128):
    """Causal attention over everything before, some query rows at a time."""
    out = []
    for lo in range(0, q.shape[2], rows):
        hi = min(lo + rows, q.shape[2])
        mask = torch.arange(hi)[None] > torch.arange(lo, hi)[:, None]
        scores = q[:, :, lo:hi] @ k[:, :, :hi].transpose(-1, -2) * scale
        out.append(sink_softmax(scores, sinks, mask) @ v[:, :, :hi])
    return torch.cat(out, 2)


def windowed_attention(q, k, v, sinks, window, scale):
    """Query blocks of one window see their own and the previous key block."""
    b, h, t, d = q.shape
    pad = -t % window
    if pad:
        q, k, v = (F.pad(z, (0, 0, 0, pad)) for z in (q, k, v))
    n = (t + pad) // window
    q = q.reshape(b, h, n, window, d)

    def with_previous(z):
        z = z.reshape(b, h, n, window, d)
        return torch.cat([F.pad(z, (0, 0, 0, 0, 1, 0))[:, :, :-1], z], 3)

    i = torch.arange(window)[:, None] + window
    j = torch.arange(2 * window)[None]
    mask = (j > i) | (i - j >= window)
    mask = mask.expand(n, -1, -1).clone()
    mask[0, :, :window] = True
    y = sink_softmax(q @ with_previous(k).transpose(-1, -2) * scale, sinks, mask) @ with_previous(v)
    return y.reshape(b, h, t + pad, d)[:, :, :t]


class Experts(nn.Module):
    """Router and experts. `gate_up` rows: first all gate rows, then all up rows."""

    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        e, h, f = cfg.experts, cfg.hidden, cfg.expert_width
        self.router = nn.Linear(h, e)
        self.gate_up = nn.Parameter(torch.empty(e, 2 * f, h))
        self.gate_up_bias = nn.Parameter(torch.zeros(e, 2 * f))
        self.down = nn.Parameter(torch.empty(e, h, f))
        self.down_bias = nn.Parameter(torch.zeros(e, h))
        self.fake_quant = False
        self.balance = torch.zeros(())  # load-balancing loss of the last forward
        self.counts = torch.zeros(e)  # routings of the last forward, by expert

    def forward(self, x):
        cfg = self.cfg
        logits = self.router(x)
        top, chosen = logits.topk(cfg.top_k, -1)
        weight = top.softmax(-1)
        flat = chosen.reshape(-1)
        order = torch.argsort(flat, stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order))
        counts = torch.bincount(flat, minlength=cfg.experts)
        self.counts = counts
        self.balance = cfg.experts * (counts / counts.sum() * logits.softmax(-1).mean(0)).sum()

        gate_up, down = self.gate_up, self.down
        if self.fake_quant:
            gate_up, down = FakeQuant.apply(gate_up), FakeQuant.apply(down)
        y = ExpertRows.apply(x, gate_up, self.gate_up_bias, down, self.down_bias, order // cfg.top_k, counts.tolist())
        y = Permute.apply(y, inverse, order).view(-1, cfg.top_k, cfg.hidden)
        return (y * weight[..., None]).sum(1)


class Layer(nn.Module):
    def __init__(self, cfg: Config, index: int):
        super().__init__()
        self.attn_norm = nn.RMSNorm(cfg.hidden, cfg.eps)
        self.attn = Attention(cfg, windowed=index % 2 == 0)
        self.ffn_norm = nn.RMSNorm(cfg.hidden, cfg.eps)
        self.experts = Experts(cfg)

    def forward(self, x, cos, sin):
        x = x + self.attn(self.attn_norm(x), cos, sin)
        y = self.experts(self.ffn_norm(x).view(-1, x.shape[-1]))
        return x + y.view_as(x)


class GptOss(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.hidden)
        self.layers = nn.ModuleList(Layer(cfg, i) for i in range(cfg.layers))
        self.norm = nn.RMSNorm(cfg.hidden, cfg.eps)
        self.output = nn.Linear(cfg.hidden, cfg.vocab, bias=False)
        self.init()

    def init(self):
        cfg = self.cfg
        deep = (2 * cfg.layers) ** -0.5
        nn.init.normal_(self.embed.weight, std=0.5)
        nn.init.normal_(self.output.weight, std=cfg.hidden**-0.5 * 0.5)
        for layer in self.layers:
            for lin in (layer.attn.q, layer.attn.k, layer.attn.v):
                nn.init.normal_(lin.weight, std=cfg.hidden**-0.5)
                nn.init.zeros_(lin.bias)
            nn.init.normal_(layer.attn.o.weight, std=(cfg.heads * cfg.head_dim) ** -0.5 * deep)
            nn.init.zeros_(layer.attn.o.bias)
            nn.init.normal_(layer.experts.router.weight, std=cfg.hidden**-0.5 * 0.5)
            nn.init.zeros_(layer.experts.router.bias)
            nn.init.normal_(layer.experts.gate_up, std=cfg.hidden**-0.5)
            nn.init.normal_(layer.experts.down, std=cfg.expert_width**-0.5 * deep)

    def hidden(self, tokens):
        """The normed state [batch, time, hidden] that the output matrix reads."""
        cos, sin = yarn(self.cfg, tokens.shape[1])
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)

    def forward(self, tokens):
        """Logits [batch, time, vocab] of tokens [batch, time]."""
        return self.output(self.hidden(tokens))

    def loss(self, tokens, targets):
        """Mean cross entropy (nats a token) of predicting `targets`, -1 where there is none."""
        return OutputLoss.apply(self.hidden(tokens).flatten(0, 1), self.output.weight, targets.flatten())

    def set_fake_quant(self, on: bool):
        for layer in self.layers:
            layer.experts.fake_quant = on

    def balance(self):
        return sum(layer.experts.balance for layer in self.layers) / self.cfg.layers
