"""Trains the small model on one CPU core: `python train.py RUN_FOLDER --minutes 55`.

The folder gets the prepared corpus (on the first start), checkpoints, and a log. The length of the
run is set in tokens, or in minutes of this machine; the schedule follows whichever is given. The
last part trains with the experts' weights on the MXFP4 grid, as they are exported.
"""

import argparse
import json
import math
import time
from dataclasses import asdict
from pathlib import Path

import torch

import data
from model import Config, GptOss

SEED = 1
PEAK_RATE, LAST_RATE, WARMUP_STEPS = 3e-3, 1e-4, 100
BALANCE = 0.003  # weight of the load-balancing loss
FAKE_QUANT_FROM = 0.60  # share of the run after which experts train on the MXFP4 grid
LONG_FROM = 0.85  # share after which sequences are longer, the tokens a step the same
STEP_TOKENS, SHORT, LONG = 4096, 512, 2048
SAVE_EVERY_S = 240


def rate(peak: float, done: float, step: int) -> float:
    """Warm-up, then half a cosine from `peak` to LAST_RATE over the run."""
    cosine = LAST_RATE + (peak - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    return cosine * min(1.0, (step + 1) / WARMUP_STEPS)


def optimiser(model: GptOss):
    decayed = [p for n, p in model.named_parameters() if p.dim() >= 2 and "bias" not in n and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if not (p.dim() >= 2 and "bias" not in n and "embed" not in n)]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.95), eps=1e-9, fused=True)


def save(path: Path, model: GptOss, step: int, tokens: int, seconds: float):
    part = path.with_suffix(".part")
    torch.save({"config": asdict(model.cfg), "model": model.state_dict(), "step": step,
                "tokens": tokens, "seconds": seconds}, part)
    part.replace(path)


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("run", type=Path)
    args.add_argument("--minutes", type=float)
    args.add_argument("--tokens", type=int)
    args.add_argument("--rate", type=float, default=PEAK_RATE, help="peak learning rate")
    args.add_argument("--start", type=Path, help="a checkpoint to go on from, with a fresh optimiser and schedule")
    args = args.parse_args()
    if (args.minutes is None) == (args.tokens is None):
        raise SystemExit("give either --minutes or --tokens")
    if not (args.run / "corpus.json").exists():
        data.prepare(args.run, SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    model = GptOss(Config())
    before = 0
    if args.start:
        saved = torch.load(args.start, weights_only=True)
        model.load_state_dict(saved["model"])
        before = saved["tokens"]
    opt = optimiser(model)
    batches = data.Batches(args.run, SEED + before)
    log = (args.run / "log.jsonl").open("w")
    start = saved = time.monotonic()
    step = tokens = 0
    mean = None
    while True:
        seconds = time.monotonic() - start
        done = tokens / args.tokens if args.tokens else seconds / (args.minutes * 60)
        if done >= 1.0:
            break
        model.set_fake_quant(done >= FAKE_QUANT_FROM)
        length = LONG if done >= LONG_FROM else SHORT
        rows, targets = (torch.from_numpy(a) for a in batches.next(STEP_TOKENS // length, length))
        for group in opt.param_groups:
            group["lr"] = rate(args.rate, done, step)
        loss = model.loss(rows[:, :-1], targets)
        (loss + BALANCE * model.balance()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        step += 1
        tokens += STEP_TOKENS
        mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
        if step % 20 == 0:
            line = {"step": step, "tokens": before + tokens, "seconds": round(seconds), "done": round(done, 3),
                    "loss": round(mean, 3), "balance": round(model.balance().item(), 2)}
            log.write(json.dumps(line) + "\n")
            log.flush()
        if time.monotonic() - saved > SAVE_EVERY_S:
            saved = time.monotonic()
            save(args.run / "checkpoint.pt", model, step, before + tokens, seconds)
    save(args.run / "final.pt", model, step, before + tokens, time.monotonic() - start)


if __name__ == "__main__":
    main()
