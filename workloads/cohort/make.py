"""Writes the saved request bodies beside it: sixteen independent requests, to be sent at once.

`text-NN.json`: 48 bytes, each from another place of a program, then 24 tokens; they go to
`/v1/completions`, so that a model of random weights whose tokens are bytes can answer too. `chat-NN.json`:
small coding tasks for `/v1/chat/completions`, answered to their natural ends.

A study replays the files that are committed, byte for byte; this script is how they were made.
"""

import importlib.util
import pathlib

HERE = pathlib.Path(__file__).parent
CODING = HERE.parent / "coding"

spec = importlib.util.spec_from_file_location("coding", CODING / "make.py")
coding = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coding)

CHARS = 48
ANSWER = 24
LONGEST = 768

TASKS = (
    "Write a Python function that tells whether a word reads the same backwards.",
    "Write a Python function that counts the words of a text.",
    "Write a Python function that returns the second largest number of a list.",
    "Write a Python function that merges two sorted lists into one sorted list.",
    "Write a Python class for a stack with push, pop and peek.",
    "Write a Python function that turns seconds into hours, minutes and seconds.",
    "Write a Python function that removes duplicates from a list and keeps the order.",
    "Write a Python function that reads a file and returns its longest line.",
    "Write a Python function that checks whether brackets in a text are balanced.",
    "Write a Python function that groups words by their first letter.",
    "Write a Python function that computes the greatest common divisor.",
    "Write a Python function that flattens a list of lists.",
    "Write a Python function that finds all even numbers below n.",
    "Write a Python function that reverses the order of words in a sentence.",
    "Write a Python class that counts how often each key was seen.",
    "Write a Python function that parses a line of key=value pairs into a dict.",
)

text = coding.SHELF
for i, task in enumerate(TASKS):
    start = text.index("\n", i * (len(text) - CHARS) // len(TASKS)) + 1
    coding.write(
        HERE / f"text-{i:02}.json",
        {
            "model": "default",
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": ANSWER,
            **coding.NEUTRAL,
            "ignore_eos": True,
            "timings_per_token": True,
            "prompt": text[start : start + CHARS],
        },
    )
    messages = [{"role": "user", "content": task}]
    coding.write(HERE / f"chat-{i:02}.json", coding.chat(messages, LONGEST))
