"""Writes the saved request bodies beside it: long prompts as plain text, then a short answer.

A study replays the files that are committed, byte for byte; this script is how they were made.
They go to `/v1/completions`, so that a model of random weights can answer too.
"""

import importlib.util
import pathlib

HERE = pathlib.Path(__file__).parent
CODING = HERE.parent / "coding"

spec = importlib.util.spec_from_file_location("coding", CODING / "make.py")
coding = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coding)

# Characters of code to a token of o200k, about.
CHARS = 4.05
ANSWER = 64

text = (CODING / "shelf.py.txt").read_text(encoding="utf-8")
for tokens in (512, 2048):
    chars = int(tokens * CHARS)
    prompt = (text * (chars // len(text) + 1))[:chars]
    body = {
        "model": "default",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": ANSWER,
        **coding.NEUTRAL,
        "ignore_eos": True,
        "timings_per_token": True,
        "prompt": prompt,
    }
    coding.write(HERE / f"{tokens}.json", body)
