"""Writes the saved request bodies beside it: prompts as plain text, then a short answer.

`512.json`, `2048.json` hold about so many tokens of o200k; `bytes-*.json` hold so many
bytes, for models whose tokens are bytes, and no two of them begin alike, so that a server cannot
take one's prompt from another's.

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


def save(name: str, start: int, chars: int) -> None:
    """Saves a body whose prompt is `chars` characters of the text, over and over from `start`."""
    prompt = (text[start:] + text * (chars // len(text) + 1))[:chars]
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
    coding.write(HERE / f"{name}.json", body)


for tokens in (512, 2048):
    save(str(tokens), 0, int(tokens * CHARS))
for tokens, begin in ((512, "class "), (2048, "import "), (8192, "def "), (13000, "from ")):
    save(f"bytes-{tokens}", text.index("\n" + begin) + 1, tokens)
