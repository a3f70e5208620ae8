//! The model file's Jinja chat template.

use crate::formats::gguf::Metadata;

/// Why a prompt could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("chat template: {message}")]
pub struct TemplateError {
    /// The template engine's words, with a line where known; a template's own
    /// `raise_exception` text is given as it is.
    pub message: String,
}

/// What a template sees.
#[derive(Debug, Default)]
pub struct RenderInput<'a> {
    /// OpenAI-shaped messages, already validated.
    pub messages: &'a [serde_json::Value],
    /// OpenAI-shaped tools.
    pub tools: Option<&'a [serde_json::Value]>,
    /// Whether the assistant's turn is opened.
    pub add_generation_prompt: bool,
    /// `low`, `medium`, `high`.
    pub reasoning_effort: Option<&'a str>,
    /// Further variables (`chat_template_kwargs`).
    pub extra: Option<&'a serde_json::Map<String, serde_json::Value>>,
}

/// A compiled chat template.
pub struct ChatTemplate {}

impl ChatTemplate {
    /// Compiles `tokenizer.chat_template`; `Ok(None)` when the file has none.
    pub fn from_metadata(_meta: &Metadata) -> Result<Option<Self>, TemplateError> {
        todo!()
    }
    /// Compiles a template from text.
    pub fn new(_source: &str, _bos: &str, _eos: &str) -> Result<Self, TemplateError> {
        todo!()
    }
    /// Renders a conversation.
    pub fn render(&self, _input: &RenderInput<'_>) -> Result<String, TemplateError> {
        todo!()
    }
    /// The template's source.
    pub fn source(&self) -> &str {
        todo!()
    }
    /// Whether it writes harmony (`<|channel|>` in its source).
    pub fn is_harmony(&self) -> bool {
        todo!()
    }
}
