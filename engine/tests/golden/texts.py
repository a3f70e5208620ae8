"""The texts of the golden cases, and their token ids by the tokenizer inside the GGUF file."""

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

CHAT = (
    "<|start|>system<|message|>You are a small model that writes code.\nReasoning: medium\n"
    "Valid channels: analysis, commentary, final.<|end|>"
    "<|start|>user<|message|>Write a Python function that returns the sum of a list.<|end|><|start|>assistant"
)

CODE = '''"""Read numbers from a file and print a short report."""

import argparse
import os
import sys


class Report:
    """Collects numbers and keeps the smallest, the largest and the sum."""

    def __init__(self, name):
        self.name = name
        self.values = []
        self.total = 0

    def add(self, value):
        """Add one value to the report."""
        if not isinstance(value, (int, float)):
            raise TypeError("value must be a number, not %r" % type(value).__name__)
        self.values.append(value)
        self.total += value

    def mean(self):
        if not self.values:
            return None
        return self.total / len(self.values)

    def __repr__(self):
        return "%s(%r)" % (self.__class__.__name__, self.name)


def read_numbers(path):
    """Yield the numbers of a file, one line each; empty lines are skipped."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            try:
                yield float(line)
            except ValueError:
                raise ValueError("%s:%d: not a number: %r" % (path, number, line)) from None


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", help="files to read")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no names")
    args = parser.parse_args(argv)
    for path in args.paths:
        report = Report(os.path.basename(path))
        for value in read_numbers(path):
            report.add(value)
        if args.quiet:
            print(report.mean())
        else:
            print(report.name, report.mean(), min(report.values), max(report.values))
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''

PROSE = (
    "<|im_start|>user\nWhat is a palindrome? Give three examples.<|im_end|>\n<|im_start|>assistant\n"
    "A palindrome is a word or a sentence that reads the same forwards and backwards. "
    "Three examples are level, radar and \"Never odd or even\". The number 12321 is one as well."
)

GPT_4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS = {
    "gpt-4o": [pre_tokenizers.Split(Regex(GPT_4O), "isolated"),
               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)],
    "smollm": [pre_tokenizers.Digits(individual_digits=True),
               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)],
}
NORMAL = 1


def encode(g, text: str) -> list[int]:
    """Token ids of `text`; the file's control tokens count as single tokens."""
    tokens, kinds = g.key("tokenizer.ggml.tokens"), g.key("tokenizer.ggml.token_type")
    vocab = {t: i for i, t in enumerate(tokens)}
    tok = Tokenizer(models.BPE(vocab, [tuple(m.split(" ")) for m in g.key("tokenizer.ggml.merges")]))
    tok.pre_tokenizer = pre_tokenizers.Sequence(SPLITS[g.key("tokenizer.ggml.pre")])
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, k in zip(tokens, kinds) if k != NORMAL])
    return tok.encode(text, add_special_tokens=False).ids
