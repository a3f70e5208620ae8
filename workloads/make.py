"""Writes the saved request bodies of `context/`, `context-small/`, `prompt/`, `chat/` and `rewrite/`.

A study replays the files that are committed, byte for byte; this script is how they were made. All
text is of this project: the code is its own training scripts, the rest was written for it.
"""

import importlib.util
import pathlib

HERE = pathlib.Path(__file__).parent

spec = importlib.util.spec_from_file_location("coding", HERE / "coding" / "make.py")
coding = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coding)

# The scripts that trained the small model: about 13,000 tokens of gpt-oss's vocabulary, and, in the
# smaller set, about 13,000 of the small model's own, whose context is 16,384.
WHOLE = ("model", "mxfp4", "tokenizer", "corpus", "data", "train", "evaluate", "export", "sample")
SMALLER = ("model", "mxfp4", "data", "train", "export", "sample")

FOLLOW = [
    (
        "Add gradient accumulation to `train.py`: a flag `--accumulate N`, after which each optimiser step is the mean "
        "over N batches. Without the flag nothing may change. Show only what changes.",
        "The flag goes beside the others, and the loop takes N batches a step:\n\n"
        "```python\n"
        '    args.add_argument("--accumulate", type=int, default=1, help="batches whose mean gradient is one step")\n'
        "```\n\n"
        "```python\n"
        "        model.set_fake_quant(done >= FAKE_QUANT_FROM)\n"
        "        length = LONG if done >= LONG_FROM else SHORT\n"
        '        for group in opt.param_groups:\n            group["lr"] = rate(args.rate, done, step)\n'
        "        loss = 0.0\n"
        "        for _ in range(args.accumulate):\n"
        "            rows, targets = (torch.from_numpy(a) for a in batches.next(STEP_TOKENS // length, length))\n"
        "            part = model.loss(rows[:, :-1], targets)\n"
        "            ((part + BALANCE * model.balance()) / args.accumulate).backward()\n"
        "            loss += part.item() / args.accumulate\n"
        "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "        opt.step()\n"
        "        opt.zero_grad()\n"
        "        step += 1\n"
        "        tokens += STEP_TOKENS * args.accumulate\n"
        "        mean = loss if mean is None else 0.95 * mean + 0.05 * loss\n"
        "```\n\n"
        "With `--accumulate 1` each line computes what it did before: dividing by 1 is exact. The norm is clipped once, "
        "over the mean, and `loss` is now a number, so `mean` no longer calls `item()`.",
    ),
    (
        "What else counts steps or assumes one batch a step? Look through all files and tell me what you would leave "
        "alone and what you would change.",
        "Four places:\n\n"
        "1. `rate` warms up over `WARMUP_STEPS` optimiser steps. Leave it: the warm-up is there for the optimiser's "
        "moments, which see one gradient a step however many batches are in it.\n"
        "2. The log prints each 20th step and takes `model.balance()` of the last forward only. With N batches that is "
        "one of N; I would keep a running mean as for the loss.\n"
        "3. `Batches.drawn` walks `MIX` one sequence at a time, so the mix over a step gets closer to even with a larger "
        "N. Nothing to change.\n"
        "4. `--start` seeds the batches with `SEED + before`, where `before` is a number of tokens. Two runs that differ "
        "only in `--accumulate` reach different token counts at the same step and so go on with different orders. That "
        "is harmless, but a comment should say that the seed is tied to tokens and not to steps.\n\n"
        "Checkpoints hold tokens and steps separately, so old ones can still be read.",
    ),
    (
        "Now write a test for `rate`: within the warm-up, at the peak, at the end of the run and past it.",
        "```python\n"
        "import pytest\n\n"
        "from train import LAST_RATE, WARMUP_STEPS, rate\n\n\n"
        "def test_warm_up_is_linear_in_steps():\n"
        "    for step in (0, 9, WARMUP_STEPS - 1):\n"
        "        assert rate(1e-3, 0.0, step) == pytest.approx(1e-3 * (step + 1) / WARMUP_STEPS)\n\n\n"
        "def test_the_peak_is_reached_and_left():\n"
        "    assert rate(1e-3, 0.0, WARMUP_STEPS) == pytest.approx(1e-3)\n"
        "    assert rate(1e-3, 0.5, WARMUP_STEPS) == pytest.approx((1e-3 + LAST_RATE) / 2)\n\n\n"
        "def test_the_end_is_the_last_rate_and_stays_there():\n"
        "    assert rate(1e-3, 1.0, 10 * WARMUP_STEPS) == pytest.approx(LAST_RATE)\n"
        "    assert rate(1e-3, 1.7, 10 * WARMUP_STEPS) == pytest.approx(LAST_RATE)\n"
        "```",
    ),
    ("Write the commit message for all of this: one line, then at most three sentences on why.", ""),
]

CHATS = [
    ["What is the difference between a list and a tuple in Python?"],
    ["How do I undo the last commit in git without losing my changes?"],
    ["Name three reasons why a program may be slower on its first run."],
    ["Is 91 a prime number? Answer in one sentence."],
    [
        "I have eggs, rice and spring onions. What can I cook in fifteen minutes?",
        "Egg fried rice: beat two eggs, fry them softly and take them out, fry cold cooked rice in a little oil until it "
        "is hot and loose, put the eggs back and stir in the sliced spring onions and some soy sauce.",
        "The rice is not cooked yet. Does it still work?",
    ],
    [
        "Translate into English: \"Der Zug hat wegen einer Weichenstörung zwanzig Minuten Verspätung.\"",
        "\"The train is twenty minutes late because of a points failure.\"",
        "How would an American say it?",
    ],
    [
        "Write a function in Python that returns the n-th Fibonacci number.",
        "```python\ndef fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n```",
        "What happens for a negative n?",
        "`range(n)` is empty then, so it returns 0.",
        "Make it raise an error instead.",
    ],
    ["Explain in two sentences what a hash table is, to someone who knows what a list is."],
]


def code(names):
    parts = []
    for name in names:
        text = (HERE / "models" / f"{name}.py").read_text(encoding="utf-8")
        # Some servers would read harmony's markers in a message as such, others as text.
        text = text.replace("<|", "<:").replace("|>", ":>")
        parts.append(f"`{name}.py`\n\n```python\n{text}```\n")
    return "Here are the scripts with which I train a small mixture-of-experts model on a CPU.\n\n" + "\n".join(parts)


def context(folder, names):
    """Four requests, each the one before with its answer and a further question."""
    messages = [{"role": "system", "content": "You help with a Python project. Be brief and exact."}]
    for number, (ask, answer) in enumerate(FOLLOW, start=1):
        text = f"{code(names)}\n{ask}" if number == 1 else ask
        messages.append({"role": "user", "content": text})
        # The same number of tokens from every server.
        coding.write(HERE / folder / f"{number}-turn.json", {**coding.chat(messages, 256), "ignore_eos": True})
        messages.append({"role": "assistant", "content": answer})


def one(path, text, most):
    coding.write(HERE / path, coding.chat([{"role": "user", "content": text}], most))


def main():
    context("context", WHOLE)
    context("context-small", SMALLER)
    review = (HERE / "prompt" / "review.md.txt").read_text(encoding="utf-8")
    one("prompt/review.json", f"{review}\nSummarise this review for people who have two minutes: what happened, why, and "
        "which of the seven changes would have shortened the night most.", 384)
    for number, turns in enumerate(CHATS):
        roles = ("user", "assistant")
        messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(turns)]
        coding.write(HERE / "chat" / f"{number}.json", coding.chat(messages, 256))
    letter = (HERE / "rewrite" / "letter.txt").read_text(encoding="utf-8")
    one("rewrite/letter.json", f"Rewrite this letter in plain words, at most half as long. Keep every fact.\n\n{letter}", 512)
    report = (HERE / "rewrite" / "report.py.txt").read_text(encoding="utf-8")
    one("rewrite/report.json", "Rewrite this function so that it reads well: names, `with`, a type for rows, no bare "
        f"`except`, the same output to the byte. Return the whole file.\n\n```python\n{report}```\n", 1024)


if __name__ == "__main__":
    main()
