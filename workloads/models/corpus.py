"""The training text: Python's standard library and chats made from it, split by whole files.

Everything comes from the running interpreter's own library directory (PSF licence), so nothing is
downloaded. A file is held out when a hash of its relative path says so.
"""

import ast
import hashlib
import random
import re
import sysconfig
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path

import tasks

# Tables and data rather than code, or text under further licences.
SKIP = re.compile(r"site-packages|/encodings/|pydoc_data|lib2to3/tests/data|turtledemo|/msilib/"
                  r"|config-3|_sysconfigdata|/cjkencodings/|unicodedata|/test_dtrace/|decimaltestdata")
HELD_OUT_PERCENT = 3


@dataclass(frozen=True)
class Source:
    path: str  # relative to the library directory
    text: str
    is_test: bool
    held_out: bool


def sources() -> list[Source]:
    """Every usable library file, in path order."""
    root = Path(sysconfig.get_paths()["stdlib"])
    out = []
    for p in sorted(root.rglob("*.py")):
        rel = p.relative_to(root).as_posix()
        if SKIP.search("/" + rel):
            continue
        try:
            text = p.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        figures = sum(c.isdigit() for c in text)
        if len(text) < 200 or figures > 0.12 * len(text):
            continue
        percent = int.from_bytes(hashlib.sha256(rel.encode()).digest()[:4], "little") % 100
        out.append(Source(rel, text, bool(re.search(r"(^|/)(idle_)?tests?/", rel)), percent < HELD_OUT_PERCENT))
    return out


@dataclass(frozen=True)
class Function:
    name: str
    owner: str  # class name, or ""
    args: list[str]
    doc: str  # first line of the docstring, no full stop
    code: str  # dedented, with its docstring
    bare: str  # the same without the docstring


def functions(src: Source) -> list[Function]:
    """Documented functions of 3 to 24 lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(src.text)
        except (SyntaxError, ValueError):
            return []
    lines = src.text.splitlines()
    out = []

    def visit(node, owner):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, child.name)
            elif isinstance(child, ast.FunctionDef):
                add(child, owner)

    def add(f, owner):
        doc = ast.get_docstring(f)
        body = f.body[1:]
        if not doc or not body or not 3 <= f.end_lineno - f.lineno <= 24:
            return
        first = doc.strip().split("\n\n")[0].replace("\n", " ").rstrip(".")
        if not 12 <= len(first) <= 120 or not first.isascii() or not first[0].isalpha():
            return
        own = lines[f.lineno - 1 : f.end_lineno]
        head = lines[f.lineno - 1 : f.body[0].lineno - 1]
        if not head:
            return
        code = textwrap.dedent("\n".join(own))
        bare = textwrap.dedent("\n".join(head + lines[f.body[0].end_lineno : f.end_lineno]))
        args = [a.arg for a in f.args.args]
        out.append(Function(f.name, owner, args, first, code, bare))

    visit(tree, "")
    return out


def lower_first(s: str) -> str:
    return s if s[:2].isupper() else s[0].lower() + s[1:]


def analysis(rng: random.Random, wish: str, plan: str, effort: str) -> str:
    """Short reasoning; `low` is one sentence, `high` says more."""
    parts = [rng.choice(["The user wants {}.", "The task is {}.", "I need {}."]).format(wish)]
    if effort != "low":
        parts.append(plan)
    if effort == "high":
        parts.append(rng.choice(["I keep it short and clear.", "Then I check the result.",
                                 "No other module is needed.", "Plain Python is enough."]))
    return " ".join(parts)


def block(code: str) -> str:
    return "```python\n" + code.strip("\n") + "\n```"


def library_chat(rng: random.Random, f: Function) -> list[dict]:
    """A conversation about one library function: one to three exchanges."""
    what = "method" if f.owner else "function"
    where = f" of class `{f.owner}`" if f.owner and rng.random() < 0.7 else ""
    doc = lower_first(f.doc)
    ask = rng.choice([
        f"Write a Python {what} `{f.name}`{where} that does this: {doc}.",
        f"Write a Python {what} `{f.name}`{where}: {doc}.",
        f"{f.doc}. Name the {what} `{f.name}`.",
        f"Please write `{f.name}`{where}. It should {doc}.",
    ])
    args = ", ".join(f"`{a}`" for a in f.args) or "no arguments"
    documented = rng.random() < 0.6
    talk = [("user", ask), ("assistant", block(f.code if documented else f.bare),
             f"a {what} `{f.name}`", f"It takes {args}.")]
    if not documented:
        talk += [("user", rng.choice(["Add a docstring.", "Now add a docstring.", "Please document it."])),
                 ("assistant", block(f.code), f"a docstring in `{f.name}`", f"The docstring says: {f.doc}.")]
    if rng.random() < 0.4:
        talk += [("user", rng.choice(["Explain it briefly.", "What does it do?", "Explain the code in one sentence."])),
                 ("assistant", f"`{f.name}` takes {args}. In short: {doc}.",
                  f"a short explanation of `{f.name}`", f"It takes {args}.")]
    return to_messages(rng, talk)


def to_messages(rng: random.Random, talk) -> list[dict]:
    """Cuts the talk after a random answer; only that answer keeps its reasoning."""
    turns = rng.randint(1, len(talk) // 2)
    effort = rng.choice(["low", "medium", "medium", "medium", "high"])
    out = []
    for turn in talk[: 2 * turns]:
        if turn[0] == "user":
            out.append({"role": "user", "content": turn[1]})
        else:
            _, answer, wish, plan = turn
            out.append({"role": "assistant", "content": answer,
                        "reasoning_content": analysis(rng, wish, plan, effort)})
    if rng.random() < 0.15:
        out.insert(0, {"role": "system", "content": rng.choice(
            ["Answer with code.", "You are a helpful assistant.", "Be brief.", "You write Python."])})
    return [{"reasoning_effort": effort}, *out]


def chats(rng: random.Random, found: list[Function], made: int) -> list[list[dict]]:
    """One chat for each library function and `made` chats from the hand-written tasks, shuffled."""
    out = [library_chat(rng, f) for f in found]
    out += [to_messages(rng, tasks.talk(rng)) if rng.random() < 0.92 else tasks.tool_chat(rng) for _ in range(made)]
    rng.shuffle(out)
    return out


if __name__ == "__main__":
    for source in sources():
        digest = hashlib.sha256(source.text.encode()).hexdigest()[:16]
        print(digest, "held-out" if source.held_out else "train   ", source.path)
