//! Harmony, parsed on token ids (openai/harmony, docs/format.md).

use super::header::{Header, Purpose};
use crate::tokenizer::{Tokenizer, Utf8Stream};

/// One step of visible output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Text of the analysis channel.
    Reasoning(String),
    /// Text of the answer.
    Content(String),
    /// A tool call begins.
    ToolCallStart {
        /// Position among this turn's calls.
        index: usize,
        /// `call_...`, unique in the response.
        id: String,
        /// The function's name.
        name: String,
    },
    /// A piece of its JSON arguments.
    ToolCallArguments {
        /// Position among this turn's calls.
        index: usize,
        /// Text.
        fragment: String,
    },
}

/// Where the text of a body goes.
#[derive(Clone, Copy, Debug)]
enum Sink {
    Reasoning,
    Content,
    Call(usize),
}

#[derive(Debug)]
enum State {
    Header(Header),
    Body(Sink, Utf8Stream),
}

/// Ids of harmony's tokens; a model may lack some.
#[derive(Debug)]
struct Ids {
    start: Option<u32>,
    channel: Option<u32>,
    constrain: Option<u32>,
    message: Option<u32>,
    /// `<|end|>`, `<|return|>`, `<|call|>`.
    ends: [Option<u32>; 3],
}

/// Reads an assistant turn token by token. Malformed headers degrade to content; it never fails,
/// and text that is not part of a header always comes out. With a model that lacks harmony's
/// tokens everything is content.
#[derive(Debug)]
pub struct HarmonyParser {
    ids: Ids,
    state: State,
    calls: usize,
    /// FNV-1a over the tokens so far: makes the ids of calls.
    hash: u64,
}

impl HarmonyParser {
    /// A parser for a turn whose prompt ended in `<|start|>assistant`.
    pub fn new(tokenizer: &Tokenizer) -> Self {
        let ids = Ids {
            start: tokenizer.id_of("<|start|>"),
            channel: tokenizer.id_of("<|channel|>"),
            constrain: tokenizer.id_of("<|constrain|>"),
            message: tokenizer.id_of("<|message|>"),
            ends: ["<|end|>", "<|return|>", "<|call|>"].map(|text| tokenizer.id_of(text)),
        };
        let state = if ids.message.is_some() && ids.channel.is_some() {
            State::Header(Header::default())
        } else {
            State::Body(Sink::Content, Utf8Stream::default())
        };
        Self {
            ids,
            state,
            calls: 0,
            hash: 0xCBF2_9CE4_8422_2325,
        }
    }

    /// Takes the next generated token.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> Vec<Delta> {
        for byte in token.to_le_bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
        let mut out = Vec::new();
        let this = Some(token);
        if this == self.ids.start {
            self.close(&mut out);
            self.state = State::Header(Header::started());
        } else if this == self.ids.channel {
            self.open_channel(&mut out);
        } else if this == self.ids.message {
            self.open_body(&mut out);
        } else if this == self.ids.constrain {
            if let State::Header(header) = &mut self.state {
                header.open_constrain();
            }
        } else if self.ids.ends.contains(&this) {
            self.close(&mut out);
        } else if !tokenizer.is_special(token) {
            self.text(tokenizer.token_bytes(token), &mut out);
        }
        out
    }

    /// Ends the turn: whatever was held back comes out.
    pub fn finish(&mut self) -> Vec<Delta> {
        let mut out = Vec::new();
        self.close(&mut out);
        out
    }

    /// Whether a tool call was seen (then `finish_reason` is `tool_calls`).
    pub fn saw_tool_call(&self) -> bool {
        self.calls > 0
    }

    fn text(&mut self, bytes: &[u8], out: &mut Vec<Delta>) {
        match &mut self.state {
            State::Body(sink, utf8) => emit(*sink, utf8.push(bytes), out),
            State::Header(header) => {
                if !header.push(bytes) {
                    // This is no header: a body goes on from here.
                    let header = std::mem::take(header);
                    let (sink, utf8) = self.degrade(header, out);
                    self.state = State::Body(sink, utf8);
                }
            }
        }
    }

    /// `<|channel|>`, which in a body means that the model left out what comes before it.
    fn open_channel(&mut self, out: &mut Vec<Delta>) {
        if let State::Body(..) = self.state {
            self.close(out);
        }
        if let State::Header(header) = &mut self.state {
            let stray = header.open_channel();
            emit(
                Sink::Content,
                String::from_utf8_lossy(&stray).into_owned(),
                out,
            );
        }
    }

    /// `<|message|>`; in a body it means nothing.
    fn open_body(&mut self, out: &mut Vec<Delta>) {
        if let State::Header(header) = &mut self.state {
            let mut header = std::mem::take(header);
            let stray = header.take_stray_role();
            emit(
                Sink::Content,
                String::from_utf8_lossy(&stray).into_owned(),
                out,
            );
            let sink = self.sink(header.purpose(), out);
            self.state = State::Body(sink, Utf8Stream::default());
        }
    }

    /// Ends the message; the next token may open another.
    fn close(&mut self, out: &mut Vec<Delta>) {
        match std::mem::replace(&mut self.state, State::Header(Header::default())) {
            State::Body(sink, mut utf8) => emit(sink, utf8.finish(), out),
            State::Header(header) => {
                let (sink, mut utf8) = self.degrade(header, out);
                emit(sink, utf8.finish(), out);
            }
        }
    }

    /// Treats what was read of a header as the beginning of a body.
    fn degrade(&mut self, header: Header, out: &mut Vec<Delta>) -> (Sink, Utf8Stream) {
        let sink = self.sink(header.purpose(), out);
        let mut utf8 = Utf8Stream::default();
        let text = utf8.push(&header.into_text());
        emit(sink, text, out);
        (sink, utf8)
    }

    /// The sink for a purpose; a call is announced.
    fn sink(&mut self, purpose: Purpose, out: &mut Vec<Delta>) -> Sink {
        match purpose {
            Purpose::Reasoning => Sink::Reasoning,
            Purpose::Content => Sink::Content,
            Purpose::Call(name) => {
                let index = self.calls;
                self.calls += 1;
                let id = format!("call_{:016x}{index:04x}", self.hash);
                out.push(Delta::ToolCallStart { index, id, name });
                Sink::Call(index)
            }
        }
    }
}

/// Adds text to the output, unless it is empty.
fn emit(sink: Sink, text: String, out: &mut Vec<Delta>) {
    if text.is_empty() {
        return;
    }
    out.push(match sink {
        Sink::Reasoning => Delta::Reasoning(text),
        Sink::Content => Delta::Content(text),
        Sink::Call(index) => Delta::ToolCallArguments {
            index,
            fragment: text,
        },
    });
}
