//! Pre-tokenizers: where text is cut before merging.
//!
//! Each is the hand-written equal of the regular expression that the model family's published
//! tokenizer uses (stated at each function), with leftmost-first alternation and backtracking
//! worked out by hand, so that time is linear in the text whatever it holds.

use super::classes::CharClass;

/// A pre-tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pre {
    /// o200k: words split at lower-to-upper case, numbers by three.
    Gpt4o,
    /// cl100k as Llama 3 has it: numbers by three.
    LlamaBpe,
    /// The same with single digits.
    Qwen2,
    /// GPT-2.
    Gpt2,
    /// Single digits first, then GPT-2 on what lies between.
    Smollm,
}

/// The names of `Pre::from_name`, for messages.
pub const SUPPORTED: &str = "gpt-4o, llama-bpe, qwen2, gpt-2, smollm";

impl Pre {
    /// By its name in `tokenizer.ggml.pre`; names that llama.cpp treats as equal are equal here.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "gpt-4o" | "llama4" | "kanana2" => Self::Gpt4o,
            "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "falcon-h1" | "pixtral" | "lfm2" => {
                Self::LlamaBpe
            }
            "qwen2" | "deepseek-r1-qwen" | "megrez" => Self::Qwen2,
            "gpt-2" | "phi-2" | "mellum" | "exaone4" | "olmo" => Self::Gpt2,
            "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" => Self::Smollm,
            _ => return None,
        })
    }

    /// Whether a piece that is itself a token is taken whole, merges or not.
    pub fn whole_pieces_first(self) -> bool {
        self == Self::LlamaBpe
    }

    /// Whether models with this pre-tokenizer get a BOS where the file does not say.
    pub fn adds_bos(self) -> bool {
        self == Self::LlamaBpe
    }

    /// Calls `emit` with each piece; together the pieces are `text`.
    pub fn split<'t>(self, text: &'t str, emit: &mut dyn FnMut(&'t str)) {
        match self {
            Self::Gpt4o => each(text, gpt_4o, emit),
            Self::LlamaBpe => each(text, |rest| cl100k(rest, 3), emit),
            Self::Qwen2 => each(text, |rest| cl100k(rest, 1), emit),
            Self::Gpt2 => each(text, gpt_2, emit),
            Self::Smollm => {
                let mut rest = text;
                while !rest.is_empty() {
                    let words = run(rest, |c| !CharClass::of(c).number());
                    each(&rest[..words], gpt_2, emit);
                    rest = &rest[words..];
                    if let Some(digit) = rest.chars().next() {
                        emit(&rest[..digit.len_utf8()]);
                        rest = &rest[digit.len_utf8()..];
                    }
                }
            }
        }
    }
}

/// Cuts `text` by repeated matches; `matcher` gives the length of the match at the start.
fn each<'t>(text: &'t str, matcher: impl Fn(&str) -> usize, emit: &mut dyn FnMut(&'t str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(matcher(rest));
        emit(piece);
        rest = tail;
    }
}

/// Length in bytes of the longest prefix whose characters all satisfy `holds`.
fn run(text: &str, holds: impl Fn(char) -> bool) -> usize {
    text.find(|c| !holds(c)).unwrap_or(text.len())
}

/// Length of the first character if it satisfies `holds`, else 0.
fn one(text: &str, holds: impl Fn(char) -> bool) -> usize {
    text.chars()
        .next()
        .filter(|&c| holds(c))
        .map_or(0, char::len_utf8)
}

/// `'s|'t|'re|'ve|'m|'ll|'d`; 0 if there is none. With `any_case`, Unicode case folding applies,
/// which makes U+017F an s.
fn contraction(text: &str, any_case: bool) -> usize {
    let mut chars = text.chars();
    if chars.next() != Some('\'') {
        return 0;
    }
    let mut letter = || {
        let c = chars.next()?;
        match c {
            '\u{17f}' if any_case => Some('s'),
            c if any_case => Some(c.to_ascii_lowercase()),
            c => Some(c),
        }
    };
    match letter() {
        // The only letter here that can be two bytes.
        Some('s') => 1 + text[1..].chars().next().map_or(0, char::len_utf8),
        Some('t' | 'm' | 'd') => 2,
        Some('r' | 'v') if letter() == Some('e') => 3,
        Some('l') if letter() == Some('l') => 3,
        _ => 0,
    }
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+` at a place where nothing else matched. With `lines` false the first
/// alternative is absent. 0 if `text` does not start with white space.
fn white_space(text: &str, lines: bool) -> usize {
    let end = run(text, |c| CharClass::of(c).space());
    if lines && let Some(newline) = text[..end].rfind(['\r', '\n']) {
        return newline + 1;
    }
    if end == text.len() {
        return end;
    }
    // The last white-space character is left for the word that follows, unless it is the only one.
    match text[..end].char_indices().next_back() {
        Some((last, _)) if last > 0 => last,
        _ => end,
    }
}

/// ` ?[^\s\p{L}\p{N}]+` and then a run of `trailers`; 0 if there is none.
fn symbols(text: &str, trailers: &[char]) -> usize {
    let start = usize::from(text.starts_with(' '));
    let length = run(&text[start..], |c| CharClass::of(c).symbol());
    if length == 0 {
        return 0;
    }
    let end = start + length;
    end + run(&text[end..], |c| trailers.contains(&c))
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
/// (openai/gpt-2, `encoder.py`)
fn gpt_2(text: &str) -> usize {
    let short = contraction(text, false);
    if short > 0 {
        return short;
    }
    let start = usize::from(text.starts_with(' '));
    for class in [CharClass::letter, CharClass::number, CharClass::symbol] {
        let length = run(&text[start..], |c| class(CharClass::of(c)));
        if length > 0 {
            return start + length;
        }
    }
    white_space(text, false)
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,k}| ?[^\s\p{L}\p{N}]+[\r\n]*|`
/// `\s*[\r\n]+|\s+(?!\S)|\s+` with k = `digits` (the `tokenizer.json` of Llama 3 and Qwen 2)
fn cl100k(text: &str, digits: usize) -> usize {
    let short = contraction(text, true);
    if short > 0 {
        return short;
    }
    let prefix = one(text, word_prefix);
    let letters = run(&text[prefix..], |c| CharClass::of(c).letter());
    if letters > 0 {
        return prefix + letters;
    }
    let rest = [numbers(text, digits), symbols(text, &['\r', '\n'])];
    rest.into_iter()
        .find(|&length| length > 0)
        .unwrap_or_else(|| white_space(text, true))
}

/// `[^\r\n\p{L}\p{N}]`
fn word_prefix(c: char) -> bool {
    let class = CharClass::of(c);
    !matches!(c, '\r' | '\n') && !class.letter() && !class.number()
}

/// `\p{N}{1,most}`; 0 if there is none.
fn numbers(text: &str, most: usize) -> usize {
    text.chars()
        .take(most)
        .take_while(|&c| CharClass::of(c).number())
        .map(char::len_utf8)
        .sum()
}

/// With H = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`, T = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`, P =
/// `[^\r\n\p{L}\p{N}]` and C = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`:
/// `P?H*T+C?|P?H+T*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
/// (openai/tiktoken, `openai_public.py`, o200k)
fn gpt_4o(text: &str) -> usize {
    let prefix = one(text, word_prefix);
    // A prefix is taken if the rest then matches; a mark may be prefix or head.
    let starts = [Some(prefix), (prefix > 0).then_some(0)];
    let word = |body: fn(&str) -> usize| {
        starts.into_iter().flatten().find_map(|start| {
            let length = body(&text[start..]);
            (length > 0).then_some(start + length)
        })
    };
    if let Some(end) = word(head_then_tail).or_else(|| word(head_only)) {
        return end + contraction(&text[end..], true);
    }
    let rest = [numbers(text, 3), symbols(text, &['\r', '\n', '/'])];
    rest.into_iter()
        .find(|&length| length > 0)
        .unwrap_or_else(|| white_space(text, true))
}

/// `H*T+`; 0 if there is none. If no tail follows the run of heads, the last head that can also
/// be a tail ends the word.
fn head_then_tail(text: &str) -> usize {
    let head = run(text, |c| CharClass::of(c).head());
    let tail = run(&text[head..], |c| CharClass::of(c).tail());
    if tail > 0 {
        return head + tail;
    }
    let both = text[..head]
        .char_indices()
        .rev()
        .find(|&(_, c)| CharClass::of(c).tail());
    both.map_or(0, |(at, c)| at + c.len_utf8())
}

/// `H+T*`; 0 if there is none.
fn head_only(text: &str) -> usize {
    let head = run(text, |c| CharClass::of(c).head());
    if head == 0 {
        return 0;
    }
    head + run(&text[head..], |c| CharClass::of(c).tail())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(pre: Pre, text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        pre.split(text, &mut |piece| pieces.push(piece));
        pieces
    }

    #[test]
    fn gpt_4o_cuts_words_at_case_and_numbers_by_three() {
        let text = "camelCase HTTPServer's 12345 x\u{301}Y  \n\n  end!/\n";
        assert_eq!(
            pieces(Pre::Gpt4o, text),
            [
                "camel",
                "Case",
                " HTTPServer's",
                " ",
                "123",
                "45",
                " x\u{301}",
                "Y",
                "  \n\n",
                " ",
                " end",
                "!/\n"
            ]
        );
    }

    #[test]
    fn each_family_has_its_own_digits() {
        let text = "a  1234";
        assert_eq!(pieces(Pre::LlamaBpe, text), ["a", " ", " ", "123", "4"]);
        assert_eq!(
            pieces(Pre::Qwen2, text),
            ["a", " ", " ", "1", "2", "3", "4"]
        );
        assert_eq!(pieces(Pre::Gpt2, text), ["a", " ", " 1234"]);
        assert_eq!(pieces(Pre::Smollm, text), ["a", "  ", "1", "2", "3", "4"]);
    }

    #[test]
    fn contractions_fold_case_only_where_the_pattern_does() {
        assert_eq!(
            pieces(Pre::Gpt2, "I'LL we'll"),
            ["I", "'", "LL", " we", "'ll"]
        );
        assert_eq!(pieces(Pre::LlamaBpe, "I'LL 'ſx"), ["I", "'LL", " '", "ſx"]);
        assert_eq!(contraction("'ſx", true), 3);
        assert_eq!(contraction("'ſx", false), 0);
        assert_eq!(contraction("'r", true), 0);
    }

    #[test]
    fn a_long_run_of_anything_is_split_in_linear_time() {
        for unit in [
            "a",
            "A",
            " ",
            "\n",
            "1",
            "'",
            "\u{301}",
            "中",
            "a\u{301}B",
            " \n",
            "!A",
        ] {
            let text = unit.repeat(100_000);
            for pre in [
                Pre::Gpt4o,
                Pre::LlamaBpe,
                Pre::Qwen2,
                Pre::Gpt2,
                Pre::Smollm,
            ] {
                let mut length = 0;
                pre.split(&text, &mut |piece| length += piece.len());
                assert_eq!(length, text.len(), "{pre:?} {unit:?}");
            }
        }
    }
}
