//! Chat templates against Python's Jinja2 (`golden/chat/make_golden.py`), and hostile ones.

use palindrome_engine::chat::{ChatTemplate, RenderInput};
use serde_json::{Map, Value, json};

fn golden_dir() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chat")
}

#[test]
fn templates_render_as_python_renders_them() {
    let read = |name: &str| {
        std::fs::read_to_string(golden_dir().join(name)).expect("the file is in the repository")
    };
    let golden: Value = serde_json::from_str(&read("golden.json")).expect("valid JSON");
    let now = golden["now"].as_i64().expect("a time");
    let cases = golden["cases"].as_array().expect("a list");
    for (i, case) in cases.iter().enumerate() {
        let name = case["template"].as_str().expect("a name");
        let source = read(&format!("{name}.jinja"));
        let template = ChatTemplate::with_clock(&source, "<|s|>", "<|e|>", move || now)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut extra: Map<String, Value> = case["variables"].as_object().expect("a map").clone();
        let messages = extra
            .shift_remove("messages")
            .expect("each case has messages");
        let tools = extra.shift_remove("tools");
        let prompt = extra.shift_remove("add_generation_prompt");
        let effort = extra.shift_remove("reasoning_effort");
        let rendered = template.render(&RenderInput {
            messages: messages.as_array().expect("a list"),
            tools: tools
                .as_ref()
                .map(|tools| tools.as_array().expect("a list").as_slice()),
            add_generation_prompt: prompt == Some(json!(true)),
            reasoning_effort: effort.as_ref().and_then(Value::as_str),
            extra: Some(&extra),
        });
        match (rendered, &case["output"], &case["error"]) {
            (Ok(ours), Value::String(theirs), _) => assert_eq!(ours, *theirs, "case {i}, {name}"),
            (Err(error), _, Value::String(theirs)) => {
                assert_eq!(error.message, *theirs, "case {i}");
            }
            (ours, ..) => panic!("case {i}, {name}: {ours:?}, expected {case}"),
        }
    }
    println!("{} renderings compared", cases.len());
    assert!(cases.len() >= 12);
}

fn render(source: &str, messages: &[Value]) -> Result<String, String> {
    let input = RenderInput {
        messages,
        ..RenderInput::default()
    };
    ChatTemplate::new(source, "", "")
        .and_then(|t| t.render(&input))
        .map_err(|e| e.to_string())
}

#[test]
fn hostile_templates_end_in_an_error() {
    let sources = [
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{{ 'x' * 10000000000 }}",
        "{{ range(1000000000000) | list }}",
        "{{ '%1000000000d' | format(1) }}",
        "{% set ns = namespace(l=[]) %}{% for i in range(500) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | tojson }}",
        "{% include 'other' %}",
    ];
    for source in sources {
        assert!(render(source, &[]).is_err(), "{source}");
    }
    let nested = format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(render(&nested, &[]).is_err());
}

#[test]
fn a_long_conversation_is_within_the_bounds() {
    let source = std::fs::read_to_string(golden_dir().join("harmony.jinja")).expect("it is there");
    let text = "word ".repeat(400);
    let roles = ["user", "assistant"].into_iter().cycle();
    let messages: Vec<Value> = roles
        .take(1000)
        .map(|role| json!({"role": role, "content": text}))
        .collect();
    let prompt = render(&source, &messages).expect("two million characters are no attack");
    assert!(prompt.len() > 1000 * text.len());
}

#[test]
fn errors_say_what_and_where() {
    let errors = [
        render("line one\n{% if %}", &[]),
        render(
            "{{ messages[0].content + 1 }}",
            &[json!({"role": "user", "content": "x"})],
        ),
        render("\n\n{{ raise_exception('roles must alternate') }}", &[]),
        render(
            "{% macro f() %}{{ raise_exception('inside') }}{% endmacro %}{{ f() }}",
            &[],
        ),
        render("{{ nothing.at.all }}", &[]),
        render("{{ nothing | tojson }}", &[]),
    ];
    let lines: Vec<String> = errors
        .into_iter()
        .map(|e| e.expect_err("an error"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    chat template: syntax error: unexpected end of block (line 2)
    chat template: invalid operation: tried to use + operator on unsupported types string and number (line 1)
    chat template: roles must alternate
    chat template: inside
    chat template: undefined value: `nothing` is undefined (line 1)
    chat template: invalid operation: tojson: a value of type undefined has no JSON form (line 1)
    ");
}

#[test]
fn a_harmony_template_is_recognised_by_its_channels() {
    let template = |source: &str| ChatTemplate::new(source, "", "").expect("it compiles");
    assert!(template("<|start|>assistant<|channel|>final").is_harmony());
    assert!(!template("<|im_start|>assistant").is_harmony());
    assert_eq!(template("{{ 1 }}").source(), "{{ 1 }}");
}

#[test]
fn api_shaped_tool_calls_render_with_arguments_as_an_object() {
    let source =
        "{{ messages[0].tool_calls[0].function.arguments | tojson }}{{ messages[0].thinking }}";
    let call = json!({"function": {"name": "f", "arguments": "{\"b\":1,\"a\":\"<\"}"}});
    let message = json!({"role": "assistant", "reasoning_content": "why", "tool_calls": [call]});
    assert_eq!(
        render(source, &[message]).as_deref(),
        Ok("{\"b\": 1, \"a\": \"<\"}why")
    );
}

/// The expressions that Qwen3's template is made of: a backward walk for the last question, and
/// thoughts cut out of an answer.
#[test]
fn what_qwen3_templates_need() {
    let source = "\
{%- set ns = namespace(last=-1, found=false) -%}
{%- for m in messages[::-1] -%}
{%- set index = (messages|length - 1) - loop.index0 -%}
{%- if not ns.found and m.role == 'user' and m.content is string and not
    (m.content.startswith('<tool_response>') and m.content.endswith('</tool_response>')) -%}
{%- set ns.found = true -%}{%- set ns.last = index -%}
{%- endif -%}
{%- endfor -%}
{%- set content = messages[1].content -%}
{{- ns.last }}|{{ content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') -}}
|{{ content.split('</think>')[-1].lstrip('\n') -}}
|{% if enable_thinking is defined and enable_thinking is false %}off{% else %}on{% endif -%}
";
    let messages = [
        json!({"role": "user", "content": "why?"}),
        json!({"role": "assistant", "content": "<think>\nhm\n</think>\n\nso"}),
        json!({"role": "user", "content": "<tool_response>7</tool_response>"}),
    ];
    assert_eq!(render(source, &messages).unwrap(), "0|hm|so|on");
}
