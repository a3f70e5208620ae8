"""The byte-level BPE of the small model: trains it, and names harmony's special tokens."""

import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB_SIZE = 4096

# The same order as in o200k_harmony, moved down to the end of this vocabulary.
SPECIALS = [
    "<|startoftext|>", "<|endoftext|>", "<|reserved_2|>", "<|reserved_3|>",
    "<|return|>", "<|constrain|>", "<|reserved_6|>", "<|channel|>",
    "<|start|>", "<|end|>", "<|message|>", "<|reserved_11|>",
    "<|reserved_12|>", "<|reserved_13|>", "<|call|>", "<|reserved_15|>",
]
FIRST_SPECIAL = VOCAB_SIZE - len(SPECIALS)
ID = {text: FIRST_SPECIAL + i for i, text in enumerate(SPECIALS)}

# The split rule that GGUF calls `gpt-4o`.
GPT_4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train(texts) -> Tokenizer:
    """Learns the merges from `texts`; special tokens never take part in merging."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GPT_4O), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=FIRST_SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tok.train_from_iterator(texts, trainer)
    if tok.get_vocab_size() != FIRST_SPECIAL:
        raise SystemExit(f"the text gave {tok.get_vocab_size()} tokens instead of {FIRST_SPECIAL}")
    tok.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIALS])
    return tok


def load(path: Path) -> Tokenizer:
    """Reads what `train` and `Tokenizer.save` wrote, and checks the special ids."""
    tok = Tokenizer.from_file(str(path))
    for text, id_ in ID.items():
        if tok.token_to_id(text) != id_:
            raise SystemExit(f"{path}: {text} is not token {id_}")
    return tok


def merges(tok: Tokenizer) -> list[str]:
    """The merges as GGUF wants them: one string a merge, parts split by a space."""
    out = json.loads(tok.to_str())["model"]["merges"]
    return [m if isinstance(m, str) else " ".join(m) for m in out]
