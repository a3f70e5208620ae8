//! Tokens to visible text: harmony turns and plain text.

use super::stop::StopMatcher;
use crate::chat::{Delta, HarmonyParser};
use crate::tokenizer::{Tokenizer, Utf8Stream};

enum Reader {
    Harmony(Box<HarmonyParser>),
    Plain(Utf8Stream),
}

/// Reads one answer. Stop strings are looked for in the answer's content, not in its reasoning
/// or in the arguments of its tool calls.
pub struct Turn {
    reader: Reader,
    stops: StopMatcher,
}

impl Turn {
    /// A harmony turn.
    pub fn harmony(tokenizer: &Tokenizer, stops: Vec<String>) -> Self {
        Self {
            reader: Reader::Harmony(Box::new(HarmonyParser::new(tokenizer))),
            stops: StopMatcher::new(stops),
        }
    }
    /// Plain text; special tokens have no text, as in llama-server.
    pub fn plain(stops: Vec<String>) -> Self {
        Self {
            reader: Reader::Plain(Utf8Stream::default()),
            stops: StopMatcher::new(stops),
        }
    }
    /// Takes a token; gives what is visible now and the stop string that was found, if any.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> (Vec<Delta>, Option<String>) {
        let deltas = match &mut self.reader {
            Reader::Harmony(parser) => parser.push(tokenizer, token),
            Reader::Plain(_) if tokenizer.is_special(token) => Vec::new(),
            Reader::Plain(utf8) => vec![Delta::Content(utf8.push(tokenizer.token_bytes(token)))],
        };
        self.cut(deltas)
    }
    /// Ends the answer: whatever was held back comes out.
    pub fn finish(&mut self) -> (Vec<Delta>, Option<String>) {
        let deltas = match &mut self.reader {
            Reader::Harmony(parser) => parser.finish(),
            Reader::Plain(utf8) => vec![Delta::Content(utf8.finish())],
        };
        let (mut out, stop) = self.cut(deltas);
        if stop.is_none() {
            push_content(&mut out, self.stops.finish());
        }
        (out, stop)
    }
    /// Whether a tool was called.
    pub fn saw_tool_call(&self) -> bool {
        match &self.reader {
            Reader::Harmony(parser) => parser.saw_tool_call(),
            Reader::Plain(_) => false,
        }
    }
    fn cut(&mut self, deltas: Vec<Delta>) -> (Vec<Delta>, Option<String>) {
        let mut out = Vec::with_capacity(deltas.len());
        for delta in deltas {
            match delta {
                Delta::Content(text) => {
                    let (text, stop) = self.stops.push(&text);
                    push_content(&mut out, text);
                    if stop.is_some() {
                        return (out, stop);
                    }
                }
                other => {
                    push_content(&mut out, self.stops.finish());
                    out.push(other);
                }
            }
        }
        (out, None)
    }
}

fn push_content(out: &mut Vec<Delta>, text: String) {
    if !text.is_empty() {
        out.push(Delta::Content(text));
    }
}
