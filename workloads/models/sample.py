"""Prints what an exported file writes, greedily: `python sample.py RUN_FOLDER FILE.gguf [TOKENS]`.

Plain torch on the dequantised weights, the whole text again for every token: slow and simple.
"""

import sys
from pathlib import Path

import torch

import data
import loaded
import tokenizer

CODE = [
    "import os\nimport sys\n\n\ndef read_file(path):\n    with open(path) as f:\n",
    "class Stack:\n    def __init__(self):\n",
]
CHATS = [
    [("user", "Write a Python function that checks whether a number is prime.")],
    [("user", "Write a Python function `read_config` that reads a configuration file and returns a dictionary.")],
    [("user", "Write a function that returns the sum of a list."),
     ("assistant", "```python\ndef total(values):\n    return sum(values)\n```"), ("user", "Now write a test.")],
]
STOPS = {tokenizer.ID["<|return|>"], tokenizer.ID["<|call|>"], tokenizer.ID["<|endoftext|>"]}


@torch.no_grad()
def continue_text(model, tok, prompt: str, count: int) -> str:
    ids = tok.encode(prompt, add_special_tokens=False).ids
    start = len(ids)
    while len(ids) < start + count:
        hidden = model.hidden(torch.tensor([ids]))
        ids.append(model.output(hidden[0, -1]).argmax().item())
        if ids[-1] in STOPS:
            break
    return tok.decode(ids[start:], skip_special_tokens=False)


def main():
    run, path = Path(sys.argv[1]), Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 160
    torch.set_num_threads(1)
    model, tok = loaded.load(path), tokenizer.load(run / "tokenizer.json")
    for prompt in CODE:
        print(f"--- code\n{prompt}>>>{continue_text(model, tok, prompt, count)}")
    for chat in CHATS:
        messages = [{"role": role, "content": content} for role, content in chat]
        prompt = data.template().render(messages=messages, add_generation_prompt=True)
        print(f"--- chat: {chat[-1][1]}\n>>>{continue_text(model, tok, prompt, count)}")


if __name__ == "__main__":
    main()
