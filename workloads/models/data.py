"""Turns the corpus into token streams: prepared once, then read by training and evaluation."""

import json
import platform
import random
from pathlib import Path

import jinja2
import numpy as np

import corpus
import tokenizer

HERE = Path(__file__).parent
MADE_CHATS = 12000


def template():
    """The model's chat template, rendered the way servers render it."""
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    return env.from_string((HERE / "chat_template.jinja").read_text())


def render(tmpl, chat) -> str:
    settings, *messages = chat
    return tmpl.render(messages=messages, add_generation_prompt=False, tools=settings.get("tools"),
                       reasoning_effort=settings["reasoning_effort"])


def stream(tok, files, rng) -> np.ndarray:
    """All files in random order, each followed by <|endoftext|>."""
    files = list(files)
    rng.shuffle(files)
    out = []
    for enc in tok.encode_batch([f.text for f in files], add_special_tokens=False):
        out += enc.ids
        out.append(tokenizer.ID["<|endoftext|>"])
    return np.array(out, np.uint16)


def prepare(folder: Path, seed: int) -> None:
    """Writes tokenizer.json, *.npy streams and corpus.json (what went in) to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    found = corpus.sources()
    train, held = [s for s in found if not s.held_out], [s for s in found if s.held_out]
    tmpl = template()
    chats = corpus.chats(rng, [f for s in train for f in corpus.functions(s)], MADE_CHATS)
    held_chats = corpus.chats(rng, [f for s in held for f in corpus.functions(s)], 0)
    chats, held_chats = ([render(tmpl, c) for c in group] for group in (chats, held_chats))

    tok = tokenizer.train([s.text for s in train if not s.is_test] + ["\n".join(chats[:4000])])
    tok.save(str(folder / "tokenizer.json"))
    parts = {
        "library": stream(tok, [s for s in train if not s.is_test], rng),
        "tests": stream(tok, [s for s in train if s.is_test], rng),
        "held_out": stream(tok, held, rng),
    }
    for name, group in (("chats", chats), ("held_out_chats", held_chats)):
        encoded = [e.ids for e in tok.encode_batch(group, add_special_tokens=False)]
        parts[name] = np.array([t for ids in encoded for t in ids], np.uint16)
        np.save(folder / f"{name}_starts.npy", np.cumsum([0] + [len(e) for e in encoded])[:-1])
        np.save(folder / f"{name}_not_targets.npy", past_answers(parts[name], tok.token_to_id("final")))
    for name, tokens in parts.items():
        np.save(folder / f"{name}.npy", tokens)
    (folder / "corpus.json").write_text(json.dumps({
        "python": platform.python_version(),
        "files": len(train), "held_out_files": [s.path for s in held],
        "characters": sum(len(s.text) for s in train),
        "tokens": {name: len(tokens) for name, tokens in parts.items()},
        "chats": len(chats), "held_out_chats": len(held_chats),
    }, indent=1))


def past_answers(ids: np.ndarray, final: int) -> np.ndarray:
    """True on tokens that are never a target: final messages that end in <|end|>.

    They are history without its reasoning. As targets they would teach the model to answer without
    reasoning and not to stop.
    """
    start, channel, end = (tokenizer.ID[t] for t in ("<|start|>", "<|channel|>", "<|end|>"))
    out = np.zeros(len(ids), bool)
    specials = np.flatnonzero(ids >= tokenizer.FIRST_SPECIAL)
    for at in specials[:-1][ids[specials[:-1]] == channel]:
        k = np.searchsorted(specials, at)
        # <|channel|> final <|message|> ... closer; the answer's text holds no special token
        close = specials[k + 2] if k + 2 < len(specials) else len(ids) - 1
        if ids[close] == end and ids[at + 1] == final and ids[specials[k - 1]] == start:
            out[at : close + 1] = True
    return out


class Batches:
    """Draws training windows, half of them chats, the others library code and tests."""

    MIX = ["library", "chats", "tests", "chats", "library", "chats", "library", "chats"]

    def __init__(self, folder: Path, seed: int):
        self.rng = np.random.default_rng(seed)
        self.parts = {n: np.load(folder / f"{n}.npy") for n in ("library", "tests", "chats")}
        self.chat_starts = np.load(folder / "chats_starts.npy")
        self.not_targets = {"chats": np.load(folder / "chats_not_targets.npy")}
        self.queue = {n: [] for n in self.parts}
        self.drawn = 0

    def next(self, sequences: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """(tokens [sequences, length + 1], targets [sequences, length], -1 where there is none)."""
        rows, targets = [], []
        for _ in range(sequences):
            name = self.MIX[self.drawn % len(self.MIX)]
            self.drawn += 1
            at = self.start(name, length)
            tokens = self.parts[name][at : at + length + 1].astype(np.int64)
            rows.append(tokens)
            targets.append(tokens[1:].copy())
            if name in self.not_targets:
                targets[-1][self.not_targets[name][at + 1 : at + length + 1]] = -1
        return np.stack(rows), np.stack(targets)

    def start(self, name: str, length: int) -> int:
        """Where the next window of a part begins. Every part is walked once, in random order,
        before it repeats; windows of chats begin where a chat begins."""
        tokens, queue = self.parts[name], self.queue[name]
        if not queue:
            shift = int(self.rng.integers(length))
            starts = np.arange(shift, len(tokens) - length - 1, length)
            if name == "chats":
                starts = self.chat_starts[np.searchsorted(self.chat_starts, starts, "right") - 1]
            queue.extend(self.rng.permutation(starts).tolist())
        return min(queue.pop(), len(tokens) - length - 1)


if __name__ == "__main__":
    import sys

    prepare(Path(sys.argv[1]), seed=1)
