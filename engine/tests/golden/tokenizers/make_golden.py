"""Makes the golden files of the pre-tokenizers with Hugging Face `tokenizers`.

For each pre-tokenizer: a small byte-level BPE vocabulary, fuzzed strings and the ids that
`tokenizers` gives them. Everything is seeded; the same versions give the same files.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python make_golden.py
"""

import json
import pathlib
import random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
VOCABULARY = 700
STRINGS = 500

SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
HEAD = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
TAIL = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"


def cl100k(digits):
    return rf"{SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"


O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{HEAD}]*[{TAIL}]+{SHORT}?|"
    rf"[^\r\n\p{{L}}\p{{N}}]?[{HEAD}]+[{TAIL}]*{SHORT}?|"
    rf"\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
)


def split(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
PRE = {
    "gpt-2": GPT2,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]),
    "llama-bpe": split(cl100k(r"\p{N}{1,3}")),
    "qwen2": split(cl100k(r"\p{N}")),
    "gpt-4o": split(O200K),
}

TEXT = """The quick brown fox doesn't jump over the lazy dog; it's 3.14159 times slower, they'll say.
def parse(line, *, limit=4096):
    if not line or len(line) > limit:
        raise ValueError(f"line of {len(line)} bytes, expected 1 to {limit}")
    return [int(x, 16) for x in line.split(",")]  # 0x7F, 1234567890
fn main() { let camelCase = HTTPServer::new("127.0.0.1:8080"); println!("{camelCase:?}"); }
Die Straße ist naß; l'été à Köln, niño, İstanbul, Ωμέγα, Привет мир, 中文字符和标点。日本語のテキスト。
한국어 문장입니다. العربية لغة. עברית שפה. नमस्ते दुनिया. สวัสดีชาวโลก. 👩‍👩‍👧‍👦 👍🏽 ❤️ 🇩🇪
<div class="a">&nbsp;</div> SELECT * FROM t WHERE x >= 10 AND y != 'z';\t\tif (a && b) { return a->b; }\r\n
"""

UNITS = (
    TEXT.split()
    + "'s 'S 'll 'LL 'Re 'vE 'd 'ſ ' ’s I'M / // */ ... … — <| |> <|end|> é É ß ﬁ K ǅ ʰ ªº ½ ٣٤ Ⅷ ²".split()
    + [" ", "  ", "        ", "\t", "\t\t", "\n", "\n\n\n", "\r\n", "\r", " \n ", "\n  ", "  \n", "\x00"]
    + ["\u0301", "e\u0301", "Z\u0336\u0322", "\u200d", "\u200b", "\ufeff", "\u202e", "\u00a0", "\u3000"]
    + ["\u2028", "\u0085", "\x07", "\x1b[0m", "\x7f", "\U0010ffff", "\ue000", "\U0001d54f", "𠮷"]
)


def fuzz(rng):
    parts = []
    for _ in range(rng.randint(1, 16)):
        kind = rng.randrange(10)
        if kind == 0:
            parts.append(chr(rng.choice([rng.randrange(0x20, 0x3000), rng.randrange(0x10000, 0x1F000)])))
        elif kind == 1:
            parts.append(chr(rng.randrange(128)))
        elif kind == 2:
            parts.append(rng.choice(UNITS) * rng.randint(2, 6))
        elif kind == 3:
            parts.append(str(rng.randrange(10**9)))
        else:
            parts.append(rng.choice(UNITS))
    return "".join(parts)


def build(name, pre):
    tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama-bpe"))
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT, TEXT.upper(), TEXT.title()], trainer)
    return tokenizer


def main():
    for name, pre in PRE.items():
        tokenizer = build(name, pre)
        model = json.loads(tokenizer.to_str())["model"]
        if name == "smollm":
            # SmolLM2's vocabulary lacks tokens for some bytes; so does this one.
            gone = {"\u0106", "\u0113", "ñ", "õ"}
            vocab = {t: i for t, i in model["vocab"].items() if not gone & set(t)}
            vocab = {t: i for i, (t, _) in enumerate(sorted(vocab.items(), key=lambda x: x[1]))}
            merges = [tuple(m) for m in model["merges"] if not gone & set("".join(m))]
            state = json.loads(tokenizer.to_str())
            state["model"]["vocab"] = vocab
            state["model"]["merges"] = merges
            for added in state["added_tokens"]:
                added["id"] = vocab[added["content"]]
            tokenizer = Tokenizer.from_str(json.dumps(state))
            model = state["model"]
        rng = random.Random(f"palindrome {name}")
        cases = []
        for _ in range(STRINGS):
            text = fuzz(rng)
            cases.append([text, tokenizer.encode(text, add_special_tokens=False).ids])
        tokens = sorted(model["vocab"], key=model["vocab"].get)
        specials = [t["content"] for t in json.loads(tokenizer.to_str())["added_tokens"]]
        golden = {
            "pre": name,
            "tokens": tokens,
            "specials": specials,
            "merges": [" ".join(m) for m in model["merges"]],
            "cases": cases,
        }
        text = json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace('],[', '],\n[')
        (HERE / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
