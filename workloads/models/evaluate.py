"""Measures an exported file: `python evaluate.py RUN_FOLDER palindrome-small.gguf` prints JSON.

Held-out loss of the quantised model (nats a token) on whole files that training never saw, and on
chats made from them, beside unigram and bigram baselines of the same tokenizer that were counted on
all training text; and how unevenly the routers use their experts.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import torch

import loaded

LENGTH, TOGETHER = 1024, 4


class Ngrams:
    """Unigrams with add-one smoothing; bigrams by Witten and Bell, backed off to the unigrams."""

    def __init__(self, train: np.ndarray, vocab: int):
        counts = np.bincount(train, minlength=vocab)
        self.vocab = vocab
        self.unigram = (counts + 1) / (counts.sum() + vocab)
        pair = train[:-1].astype(np.int64) * vocab + train[1:]
        self.pairs, self.pair_counts = np.unique(pair, return_counts=True)
        first = self.pairs // vocab
        self.followers = np.bincount(first, minlength=vocab)  # different tokens seen after each
        self.followed = np.bincount(first, weights=self.pair_counts, minlength=vocab)

    def losses(self, tokens: np.ndarray, counted: np.ndarray) -> tuple[float, float]:
        a, b = tokens[:-1].astype(np.int64), tokens[1:].astype(np.int64)
        at = np.searchsorted(self.pairs, a * self.vocab + b).clip(max=len(self.pairs) - 1)
        seen = np.where(self.pairs[at] == a * self.vocab + b, self.pair_counts[at], 0)
        kinds = np.maximum(self.followers[a], 1)
        bigram = (seen + kinds * self.unigram[b]) / (self.followed[a] + kinds)
        keep = counted[1:]
        return -np.log(self.unigram[b])[keep].mean(), -np.log(bigram)[keep].mean()


@torch.no_grad()
def measure(model, tokens: np.ndarray, counted: np.ndarray) -> tuple[float, list[np.ndarray]]:
    """Loss over windows of LENGTH tokens, and how often each layer chose each expert."""
    total, targets_seen, used = 0.0, 0, [np.zeros(model.cfg.experts) for _ in model.layers]
    targets = np.where(counted, tokens.astype(np.int64), -1)
    for at in range(0, len(tokens) - 1, LENGTH * TOGETHER):
        rows = min(TOGETHER, max(1, (len(tokens) - 1 - at) // LENGTH))
        length = min(LENGTH, len(tokens) - 1 - at)
        x = torch.from_numpy(tokens[at : at + rows * length].astype(np.int64)).view(rows, length)
        y = torch.from_numpy(targets[at + 1 : at + rows * length + 1]).view(rows, length)
        n = int((y >= 0).sum())
        total += model.loss(x, y).item() * n
        targets_seen += n
        for layer, sum_ in zip(model.layers, used):
            sum_ += layer.experts.counts.numpy()
    return total / targets_seen, used


def top_share(counts: np.ndarray) -> float:
    """Share of the routings that the most used 20% of the experts take (rounded to whole experts)."""
    ordered = np.sort(counts)[::-1]
    return float(ordered[: round(0.2 * len(counts))].sum() / counts.sum())


def main():
    run, path = Path(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    model = loaded.load(path)
    train = np.concatenate([np.load(run / f"{n}.npy") for n in ("library", "tests", "chats")])
    ngrams = Ngrams(train, model.cfg.vocab)
    out = {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
    for name in ("held_out", "held_out_chats"):
        tokens = np.load(run / f"{name}.npy")
        marks = run / f"{name}_not_targets.npy"
        counted = ~np.load(marks) if marks.exists() else np.ones(len(tokens), bool)
        loss, used = measure(model, tokens, counted)
        unigram, bigram = ngrams.losses(tokens, counted)
        out[name] = {
            "tokens": len(tokens), "loss": round(loss, 4), "perplexity": round(math.exp(loss), 2),
            "unigram": round(unigram, 4), "bigram": round(bigram, 4),
            "top_20_percent_share_by_layer": [round(top_share(u), 3) for u in used],
            "top_20_percent_share": round(top_share(np.concatenate(used)), 3),
            "least_used_by_layer": [round(float(u.min() / u.sum()), 4) for u in used],
        }
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
