//! Harmony, parsed on token ids (openai/harmony, docs/format.md).

use crate::tokenizer::Tokenizer;

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

/// Reads an assistant turn token by token. Malformed headers degrade to content; it never fails.
pub struct HarmonyParser {}

impl HarmonyParser {
    /// A parser for a turn whose prompt ended in `<|start|>assistant`.
    pub fn new(_tokenizer: &Tokenizer) -> Self {
        todo!()
    }
    /// Takes the next generated token.
    pub fn push(&mut self, _tokenizer: &Tokenizer, _token: u32) -> Vec<Delta> {
        todo!()
    }
    /// Ends the turn: whatever was held back comes out.
    pub fn finish(&mut self) -> Vec<Delta> {
        todo!()
    }
    /// Whether a tool call was seen (then `finish_reason` is `tool_calls`).
    pub fn saw_tool_call(&self) -> bool {
        todo!()
    }
}
