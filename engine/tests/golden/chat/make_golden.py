"""Renders the templates beside this file with Jinja2, set up as Hugging Face `transformers` does,
and stores inputs and outputs in golden.json.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python make_golden.py
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent
NOW = 1_709_211_909  # 2024-02-29 13:05:09 UTC


class Generation(jinja2.ext.Extension):
    """`{% generation %}`: prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.If(jinja2.nodes.Const(True), body, [], []).set_lineno(line)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def strftime_now(form):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(form)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments):
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather at a place.",
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string", "description": "City & country, e.g. <Köln>"},
                    "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius"},
                    "days": {"type": "array", "items": {"type": "integer"}},
                    "where": {
                        "type": "object",
                        "properties": {"lat": {"type": "number"}, "lon": {"type": ["number", "null"]}},
                        "required": ["lat"],
                    },
                },
                "required": ["place"],
            },
        },
    },
    {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}},
]

HELLO = [message("user", "Hello, it's <me> & \"you\"!")]
TURNS = [
    message("system", "Speak plainly."),
    message("user", "2 + 2?"),
    message("assistant", "4", reasoning_content="Simple."),
    message("user", "And 3?\nÄnd 中文?"),
]
ASKED = [
    message("user", "Weather?"),
    message("assistant", "Sunny.", reasoning_content="Dropped."),
    message("user", "Really?"),
    message(
        "assistant",
        "Let me look.",
        reasoning_content="Kept.",
        tool_calls=[call("get_weather", {"place": "Köln's <Dom>", "days": [1, 2], "x": 1.5})],
    ),
    message("tool", '{"sunny": true}', tool_call_id="call_1"),
]
DATA = {
    "html": "<b>&'\"",
    "nested": {"list": [1, 2.0, 1e20, -0.5, True, None, []], "empty": {}},
    "text": "tab\t newline\n ü 🙂 \x01 \x7f",
    "zero": 0,
    "list": ["a"],
}

CASES = [
    ("chatml", {"messages": HELLO, "add_generation_prompt": True}),
    ("chatml", {"messages": TURNS, "add_generation_prompt": False}),
    ("chatml", {"messages": [], "add_generation_prompt": True}),
    ("harmony", {"messages": HELLO, "add_generation_prompt": True}),
    ("harmony", {"messages": TURNS, "add_generation_prompt": True, "reasoning_effort": "high"}),
    ("harmony", {"messages": ASKED, "add_generation_prompt": True, "tools": TOOLS}),
    ("harmony", {"messages": ASKED[:4], "add_generation_prompt": False, "tools": TOOLS[1:]}),
    ("harmony", {"messages": HELLO, "model_identity": "You are Palindrome.", "builtin_tools": ["python", "browser"]}),
    ("harmony", {"messages": [message("tool", "x")]}),
    ("harmony", {"messages": [message("judge", "x")]}),
    (
        "features",
        {
            "messages": TURNS + [message("user", "s", skip=True), message("user", "t", stop=True)],
            "data": DATA,
        },
    ),
    ("features", {"messages": HELLO, "data": {}, "tools": TOOLS}),
]


def main():
    env = environment()
    out = []
    for name, variables in CASES:
        template = env.from_string((HERE / f"{name}.jinja").read_text())
        full = {"tools": None, "documents": None, "add_generation_prompt": False}
        full |= {"bos_token": "<|s|>", "eos_token": "<|e|>", **variables}
        try:
            result = {"output": template.render(**full)}
        except jinja2.exceptions.TemplateError as error:
            result = {"error": str(error)}
        out.append({"template": name, "variables": variables, **result})
    text = json.dumps({"now": NOW, "cases": out}, ensure_ascii=False, indent=1)
    (HERE / "golden.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
