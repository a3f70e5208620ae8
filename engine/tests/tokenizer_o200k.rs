//! Our tokenizer on o200k against tiktoken's own implementation of it.

use std::sync::LazyLock;

use palindrome_engine::tokenizer::{Specials, Tokenizer, Vocabulary, o200k_harmony};

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let o200k = o200k_harmony();
    Tokenizer::new(&Vocabulary {
        pre: "gpt-4o".to_owned(),
        tokens: o200k.tokens,
        token_types: Some(o200k.token_types.into_iter().map(i64::from).collect()),
        merges: o200k.merges,
        bos: Some(199_998),
        eos: Some(200_002),
        ..Vocabulary::default()
    })
    .expect("o200k is a valid vocabulary")
});

/// A small generator of test strings (SplitMix64), the same on every machine.
struct Fuzz(u64);

impl Fuzz {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn string(&mut self) -> String {
        const UNITS: &[&str] = &[
            "the",
            "Hello",
            "WORLD",
            "camelCase",
            "HTTPServer",
            "naïve",
            "Straße",
            "İstanbul",
            "ǅ",
            "中文字符",
            "日本語テキスト",
            "한국어",
            "สวัสดี",
            "नमस्ते",
            "বাংলা",
            "العربية",
            "עברית",
            "Ωμέγα",
            "Привет",
            "👩‍👩‍👧‍👦",
            "🇩🇪",
            "👍🏽",
            "❤️",
            "e\u{301}",
            "\u{301}",
            "Z\u{336}\u{322}",
            "ʰ",
            "ªº",
            "\u{200d}",
            "\u{200b}",
            "\u{feff}",
            "\u{202e}",
            "\u{a0}",
            "\u{3000}",
            "\u{2028}",
            "\u{85}",
            "\u{0}",
            "\u{7}",
            "\u{1b}[0m",
            "\u{7f}",
            "\u{10ffff}",
            "\u{e000}",
            "\u{1d54f}",
            "𠮷",
            " ",
            "  ",
            "        ",
            "\t",
            "\t\t",
            "\n",
            "\n\n\n",
            "\r\n",
            "\r",
            " \n ",
            "0",
            "12",
            "1234567890",
            "3.14159",
            "½",
            "٣٤",
            "Ⅷ",
            "²",
            "'s",
            "'S",
            "'ll",
            "'LL",
            "'Re",
            "'vE",
            "'d",
            "'ſ",
            "'",
            "’s",
            "don't",
            "I'M",
            "/",
            "//",
            "/*",
            "*/",
            "!=",
            "==",
            "=>",
            "::",
            "->",
            "{}",
            "();",
            "[0]",
            "\"",
            "\\n",
            "#",
            "@",
            "$",
            "_",
            "__init__",
            "snake_case",
            "fn main() {\n    ",
            "def f(x):\n\treturn x",
            "<div class=\"a\">",
            "</",
            "...",
            "…",
            "—",
            "<|",
            "|>",
            "<|start|>",
            "a",
            "B",
            "é",
            "É",
            "ß",
            "ẞ",
            "ﬁ",
            "K",
        ];
        let mut text = String::new();
        for _ in 0..=self.below(30) {
            match self.below(12) {
                0 => {
                    let c = char::from_u32(self.below(0x3000) as u32).unwrap_or('\u{fffd}');
                    text.push(c);
                }
                1 => {
                    let c = char::from_u32(self.below(0x2_0000) as u32).unwrap_or('\u{fffd}');
                    text.push(c);
                }
                2 => text.push(char::from(self.below(128) as u8)),
                3 => {
                    let unit = UNITS[self.below(UNITS.len())];
                    text.extend(std::iter::repeat_n(unit, 1 + self.below(8)));
                }
                4 => text += &self.below(1_000_000_000).to_string(),
                _ => text.push_str(UNITS[self.below(UNITS.len())]),
            }
        }
        text
    }
}

#[test]
fn fuzzed_strings_encode_as_tiktoken_encodes_them() {
    let oracle = tiktoken_rs::o200k_harmony_singleton();
    let mut fuzz = Fuzz(20_260_730);
    let (mut mismatches, mut broken_round_trips, mut tokens) = (Vec::new(), 0, 0);
    const STRINGS: usize = 3000;
    for _ in 0..STRINGS {
        let text = fuzz.string();
        let ours = TOKENIZER.encode(&text, Specials::AsText);
        tokens += ours.len();
        broken_round_trips += usize::from(TOKENIZER.decode(&ours) != text.as_bytes());
        if ours != oracle.encode_ordinary(&text) {
            mismatches.push(text.clone());
        }
        if TOKENIZER.encode(&text, Specials::Parse) != oracle.encode_with_special_tokens(&text) {
            mismatches.push(text);
        }
    }
    println!(
        "o200k: {STRINGS} strings, {tokens} tokens, {} mismatches",
        mismatches.len()
    );
    assert_eq!(mismatches, Vec::<String>::new());
    assert_eq!(broken_round_trips, 0);
}

#[test]
fn every_ordinary_token_encodes_as_tiktoken_encodes_it() {
    let oracle = tiktoken_rs::o200k_harmony_singleton();
    let mut compared = 0;
    for id in 0..199_998 {
        // Tokens that are no whole characters cannot stand alone in a string.
        let Ok(text) = std::str::from_utf8(TOKENIZER.token_bytes(id)) else {
            continue;
        };
        let ours = TOKENIZER.encode(text, Specials::AsText);
        assert_eq!(ours, oracle.encode_ordinary(text), "{id}: {text:?}");
        compared += 1;
    }
    println!("o200k: {compared} tokens");
    assert!(compared > 190_000);
}

#[test]
fn special_tokens_are_parsed_or_text() {
    let text = "<|start|>user<|message|>hi<|end|>";
    let ids = TOKENIZER.encode(text, Specials::Parse);
    assert_eq!((ids[0], ids[2], ids[4]), (200_006, 200_008, 200_007));
    assert_eq!(ids.len(), 5);
    let plain = TOKENIZER.encode(text, Specials::AsText);
    assert!(plain.iter().all(|&id| id < 199_998));
    assert_eq!(TOKENIZER.decode(&plain), text.as_bytes());
    assert_eq!(TOKENIZER.end_of_generation(), [199_999, 200_002, 200_012]);
    assert!(TOKENIZER.is_special(200_005) && !TOKENIZER.is_special(5));
    assert_eq!(TOKENIZER.id_of("<|channel|>"), Some(200_005));
    assert_eq!(TOKENIZER.bos_to_add(), None);
    assert_eq!(TOKENIZER.token_bytes(300_000), b"");
}

#[test]
fn hostile_runs_end_soon_and_come_back_whole() {
    for unit in [
        "a", "A", " ", "\n", "9", "!", "\u{301}", "中", "<", "<|", "🙂", "\u{0}",
    ] {
        let text = unit.repeat(100_000 / unit.len());
        for specials in [Specials::Parse, Specials::AsText] {
            let ids = TOKENIZER.encode(&text, specials);
            assert_eq!(TOKENIZER.decode(&ids), text.as_bytes(), "{unit:?}");
        }
    }
}
