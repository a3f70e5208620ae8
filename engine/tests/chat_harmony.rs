//! Assistant turns as models write them, well formed and not.

use std::sync::LazyLock;

use palindrome_engine::chat::{Delta, HarmonyParser};
use palindrome_engine::tokenizer::{Specials, Tokenizer, Vocabulary};
use proptest::prelude::*;

const MARKS: [&str; 8] = [
    "<|return|>",
    "<|constrain|>",
    "<|channel|>",
    "<|start|>",
    "<|end|>",
    "<|message|>",
    "<|call|>",
    "<|endoftext|>",
];

/// Every byte is a token (ids 0 to 255 in the order below), then harmony's marks.
static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| vocabulary(&MARKS));

fn vocabulary(marks: &[&str]) -> Tokenizer {
    // The printable byte alphabet: direct characters, then the shifted ones.
    let direct = ('!'..='~')
        .chain('\u{a1}'..='\u{ac}')
        .chain('\u{ae}'..='\u{ff}');
    let mut tokens: Vec<String> = direct
        .chain('\u{100}'..='\u{143}')
        .map(String::from)
        .collect();
    let mut types = vec![1; tokens.len()];
    tokens.extend(marks.iter().map(|mark| (*mark).to_owned()));
    types.resize(tokens.len(), 3);
    let vocabulary = Vocabulary {
        pre: "gpt-4o".to_owned(),
        tokens,
        token_types: Some(types),
        ..Vocabulary::default()
    };
    Tokenizer::new(&vocabulary).expect("a valid vocabulary")
}

/// Everything a turn gave, pieces joined.
#[derive(Debug, Default, PartialEq)]
struct Turn {
    reasoning: String,
    content: String,
    calls: Vec<(String, String)>,
}

fn collect(tokenizer: &Tokenizer, tokens: &[u32]) -> Turn {
    let mut parser = HarmonyParser::new(tokenizer);
    let mut deltas: Vec<Delta> = tokens
        .iter()
        .flat_map(|&token| parser.push(tokenizer, token))
        .collect();
    deltas.extend(parser.finish());
    let mut turn = Turn::default();
    let mut ids = std::collections::HashSet::new();
    for delta in deltas {
        match delta {
            Delta::Reasoning(text) => turn.reasoning += &text,
            Delta::Content(text) => turn.content += &text,
            Delta::ToolCallStart { index, id, name } => {
                assert_eq!(index, turn.calls.len());
                assert!(id.starts_with("call_") && ids.insert(id));
                turn.calls.push((name, String::new()));
            }
            Delta::ToolCallArguments { index, fragment } => turn.calls[index].1 += &fragment,
        }
    }
    assert_eq!(parser.saw_tool_call(), !turn.calls.is_empty());
    turn
}

fn read(text: &str) -> Turn {
    collect(&TOKENIZER, &TOKENIZER.encode(text, Specials::Parse))
}

fn turn(reasoning: &str, content: &str, calls: &[(&str, &str)]) -> Turn {
    let calls = calls
        .iter()
        .map(|&(n, a)| (n.to_owned(), a.to_owned()))
        .collect();
    Turn {
        reasoning: reasoning.to_owned(),
        content: content.to_owned(),
        calls,
    }
}

#[test]
fn a_turn_thinks_and_then_answers() {
    let text = "<|channel|>analysis<|message|>2 + 2 is… 4 🙂<|end|>\
                <|start|>assistant<|channel|>final<|message|>4 — vier<|return|>";
    assert_eq!(read(text), turn("2 + 2 is… 4 🙂", "4 — vier", &[]));
}

#[test]
fn tools_are_called_in_every_published_form() {
    let arguments = "{\"place\": \"Köln\"}";
    for header in [
        "<|channel|>commentary to=functions.weather <|constrain|>json",
        "<|channel|>commentary to=functions.weather<|constrain|>json",
        "<|channel|>analysis to=functions.weather code",
        " to=functions.weather<|channel|>commentary json",
        "<|channel|>analysis<|message|><|end|><|start|>assistant to=functions.weather<|channel|>commentary <|constrain|>json",
    ] {
        let text = format!("{header}<|message|>{arguments}<|call|>");
        assert_eq!(
            read(&text),
            turn("", "", &[("weather", arguments)]),
            "{header}"
        );
    }
    let browser = "<|channel|>analysis to=browser.search code<|message|>{}<|call|>";
    assert_eq!(read(browser), turn("", "", &[("browser.search", "{}")]));
}

#[test]
fn a_preamble_and_several_calls_keep_their_order() {
    let text = "<|channel|>commentary<|message|>I will look.<|end|>\
                <|start|>assistant<|channel|>commentary to=functions.a <|constrain|>json<|message|>{\"x\":1}<|call|>\
                <|start|>assistant<|channel|>commentary to=functions.a <|constrain|>json<|message|>{\"x\":1}<|call|>";
    assert_eq!(
        read(text),
        turn(
            "",
            "I will look.",
            &[("a", "{\"x\":1}"), ("a", "{\"x\":1}")]
        )
    );
}

#[test]
fn malformed_headers_degrade_to_content_and_lose_nothing() {
    let cases = [
        (
            "<|channel|>commentary?<|message|>hi<|return|>",
            turn("", "hi", &[]),
        ),
        (
            "<|channel|>final junk ∂ŧ junk<|message|>hi<|return|>",
            turn("", "hi", &[]),
        ),
        ("<|channel|>unheard<|message|>hi", turn("", "hi", &[])),
        ("<|channel|><|message|>hi", turn("", "hi", &[])),
        ("<|message|>hi", turn("", "hi", &[])),
        ("assistant<|message|>hi", turn("", "hi", &[])),
        (
            "Hello, no channel<|return|>",
            turn("", "Hello, no channel", &[]),
        ),
        ("a<|return|>", turn("", "a", &[])),
        ("to be or not", turn("", "to be or not", &[])),
        ("a<|channel|>final<|message|>b", turn("", "ab", &[])),
        ("<|channel|>final Hello<|return|>", turn("", "Hello", &[])),
        (
            "<|channel|>analysis<|channel|>final<|message|>b",
            turn("", "b", &[]),
        ),
        (
            "<|channel|>analysis<|message|>a<|channel|>final<|message|>b",
            turn("a", "b", &[]),
        ),
        (
            "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b",
            turn("a", "b", &[]),
        ),
        (
            "<|channel|>final<|message|>a<|message|>b<|constrain|>c<|endoftext|>",
            turn("", "abc", &[]),
        ),
        ("<|channel|>final<|message|>a<|end|>b", turn("", "ab", &[])),
        (
            "<|channel|>final<|message|>a<|end|>assistant<|channel|>final<|message|>b",
            turn("", "ab", &[]),
        ),
        (
            "<|start|>user<|message|>invented",
            turn("", "invented", &[]),
        ),
        (
            "<|channel|>commentary to=functions.now<|call|>",
            turn("", "", &[("now", "")]),
        ),
        (
            "<|channel|>commentary to=functions.f <|constrain|>json{\"a\":1}<|call|>",
            turn("", "", &[("f", "{\"a\":1}")]),
        ),
        ("", turn("", "", &[])),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn truncated_arguments_are_surfaced() {
    let text = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": [1, ";
    assert_eq!(read(text), turn("", "", &[("f", "{\"a\": [1, ")]));
}

#[test]
fn an_endless_header_becomes_text() {
    let words = "word ".repeat(200);
    let read = read(&format!("<|channel|>analysis {words}"));
    assert_eq!(read, turn(&words, "", &[]));
}

#[test]
fn a_broken_character_at_the_end_is_not_lost_or_joined_to_the_next_message() {
    let mut tokens = TOKENIZER.encode("<|channel|>final<|message|>a🙂", Specials::Parse);
    tokens.pop();
    tokens.extend(TOKENIZER.encode("<|end|><|channel|>final<|message|>b", Specials::Parse));
    assert_eq!(collect(&TOKENIZER, &tokens), turn("", "a\u{fffd}b", &[]));
}

#[test]
fn a_model_without_the_marks_writes_content() {
    let plain = vocabulary(&["<|im_end|>"]);
    let tokens = plain.encode("assistant to=x 🙂<|im_end|>", Specials::Parse);
    assert_eq!(collect(&plain, &tokens), turn("", "assistant to=x 🙂", &[]));
}

#[test]
fn deltas_stream_and_ids_repeat_for_the_same_tokens() {
    let text = "<|channel|>commentary to=functions.f<|message|>{}<|call|>";
    let tokens = TOKENIZER.encode(text, Specials::Parse);
    let all = || {
        let mut parser = HarmonyParser::new(&TOKENIZER);
        tokens
            .iter()
            .map(|&token| parser.push(&TOKENIZER, token))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(), all());
    let steps = all();
    let [.., start, open, shut, call] = &steps[..] else {
        panic!("too few steps")
    };
    assert!(matches!(&start[..], [Delta::ToolCallStart { index: 0, name, .. }] if name == "f"));
    for (step, text) in [(open, "{"), (shut, "}")] {
        let fragment = text.to_owned();
        assert_eq!(*step, [Delta::ToolCallArguments { index: 0, fragment }]);
    }
    assert_eq!(*call, []);
}

/// Marks and pieces of text in any order.
fn parts() -> impl Strategy<Value = Vec<String>> {
    let mark = proptest::sample::select(MARKS.to_vec()).prop_map(str::to_owned);
    let word = proptest::sample::select(vec![
        "assistant",
        "analysis",
        "final",
        "commentary",
        " to=functions.x",
        " to=",
        "json",
        " ",
        "\n",
    ]);
    let digits = "[0-9]{1,4}";
    proptest::collection::vec(
        prop_oneof![mark, word.prop_map(str::to_owned), digits],
        0..24,
    )
}

/// The digits of a text, in order.
fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

proptest! {
    #[test]
    fn any_tokens_are_read(tokens in proptest::collection::vec(0u32..270, 0..200)) {
        collect(&TOKENIZER, &tokens);
    }

    /// Text between `<|message|>` and the next mark always comes out.
    #[test]
    fn bodies_come_out_whole(parts in parts()) {
        let turn = read(&parts.concat());
        let mut all = digits(&turn.reasoning) + &digits(&turn.content);
        for (name, arguments) in &turn.calls {
            all += &(digits(name) + &digits(arguments));
        }
        let mut in_body = false;
        for part in &parts {
            if MARKS.contains(&part.as_str()) {
                in_body = part == "<|message|>";
            } else if in_body {
                prop_assert!(all.contains(&digits(part)), "{part} of {parts:?} is not in {turn:?}");
            }
        }
    }

    /// Without `<|message|>` there is no header, so that every digit comes out, in order.
    #[test]
    fn unclosed_headers_come_out_whole(parts in parts()) {
        let keep = |part: &&String| part.as_str() != "<|message|>" && !part.contains("to=");
        let text: String = parts.iter().filter(keep).map(String::as_str).collect();
        let mut parser = HarmonyParser::new(&TOKENIZER);
        let mut out = String::new();
        let tokens = TOKENIZER.encode(&text, Specials::Parse);
        let mut deltas: Vec<Delta> =
            tokens.iter().flat_map(|&token| parser.push(&TOKENIZER, token)).collect();
        deltas.extend(parser.finish());
        for delta in deltas {
            match delta {
                Delta::Reasoning(text) | Delta::Content(text) => out += &text,
                other => prop_assert!(false, "{other:?} from {text}"),
            }
        }
        // Marks carry no digits, so those of the input are those of its text.
        prop_assert_eq!(digits(&out), digits(&text));
    }
}
