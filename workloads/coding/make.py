"""Writes the saved request bodies beside it and in ../agreement.

A study replays the files that are committed, byte for byte; this script is how they were made.
"""

import json
import pathlib

HERE = pathlib.Path(__file__).parent

# Every sampling field that llama-server or the bundled engine reads, neutral: its defaults
# differ from server to server, so none is left to them.
NEUTRAL = {
    "temperature": 0.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "dynatemp_range": 0.0,
    "repeat_penalty": 1.0,
    "repeat_last_n": 64,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "mirostat": 0,
    "seed": 42,
    "ignore_eos": False,
    "cache_prompt": True,
    "timings_per_token": False,
    "return_tokens": True,
}


def chat(messages, max_tokens):
    return {
        "model": "default",
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning_effort": "low",
        "max_tokens": max_tokens,
        **NEUTRAL,
        # llama-server shows no token ids in a chat's stream and holds harmony's header tokens back;
        # its running count in each event says how many tokens the first one stands for.
        "timings_per_token": True,
    }


def completion(prompt, n_predict):
    return {"prompt": prompt, "stream": False, "n_predict": n_predict, **NEUTRAL}


def write(path, body):
    path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


SHELF = (HERE / "shelf.py.txt").read_text(encoding="utf-8")

TURNS = [
    (
        "Here is a module of mine.\n\n```python\n" + SHELF + "```\n\n"
        "Write a Python function `word_frequencies` that counts how often each word occurs in a text.",
        "```python\ndef word_frequencies(text):\n    counts = {}\n    for word in text.lower().split():\n"
        "        counts[word] = counts.get(word, 0) + 1\n    return counts\n```",
    ),
    (
        "Now add a docstring.",
        '```python\ndef word_frequencies(text):\n    """Counts how often each word occurs in a text."""\n'
        "    counts = {}\n    for word in text.lower().split():\n"
        "        counts[word] = counts.get(word, 0) + 1\n    return counts\n```",
    ),
    (
        "Write a test for it.",
        "```python\ndef test_word_frequencies():\n    assert word_frequencies('a b a') == {'a': 2, 'b': 1}\n```",
    ),
    ("Explain it briefly.", ""),
]

# What the small model is for.
WISHES = [
    "Write a Python function that adds two numbers.",
    "Write a function `factorial` that returns the factorial of a number.",
    "Can you write a function that checks whether a number is prime?",
    "Write a Python function `reverse_string` that reverses a string.",
    "I need a Python function that counts the words in a string.",
    "Write a class `Stack` for a stack.",
    "Write a function that returns the largest number of a list.",
    "Please write a Python function that reads a file and returns its lines. Call it `read_lines`.",
    "Give me a Python function `unique`. It removes duplicates from a list and keeps the order.",
    "Hello",
]

# Code to go on with, where it is much less sure of itself.
PROMPTS = [
    "def is_palindrome(text):\n",
    "import os\nimport sys\n\n\ndef main():\n",
    "class Stack:\n    def __init__(self):\n",
    '"""Reads a file of settings."""\n\nimport json\n\n\ndef load(path):\n',
    "def fibonacci(n):\n    a, b = 0, 1\n",
    "class TestQueue(unittest.TestCase):\n    def test_put(self):\n",
    "def merge_sorted(left, right):\n    result = []\n    i = j = 0\n    while",
    "try:\n    import ssl\nexcept ImportError:\n",
    "for name in sorted(names):\n    print(",
    SHELF.split("class Shelf:")[0],
]


def main():
    messages = [{"role": "system", "content": "Answer with short Python code."}]
    for number, (ask, answer) in enumerate(TURNS, start=1):
        messages.append({"role": "user", "content": ask})
        # The model's own answers are a few dozen tokens, too few to time: each goes on to a fixed
        # number, the same for every server.
        body = {**chat(messages, 256), "ignore_eos": True}
        write(HERE / f"{number}-turn.json", body)
        messages.append({"role": "assistant", "content": answer})
    agreement = HERE.parent / "agreement"
    for number, wish in enumerate(WISHES):
        write(agreement / f"chat-{number}.json", chat([{"role": "user", "content": wish}], 64))
    for number, prompt in enumerate(PROMPTS):
        write(agreement / f"code-{number}.json", completion(prompt, 64))


if __name__ == "__main__":
    main()
