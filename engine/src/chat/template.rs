//! The model file's Jinja chat template.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind};

use super::clock;
use super::messages::{normalise, to_value};
use super::python_text;
use crate::formats::gguf::Metadata;

/// The name under which the template is stored.
const NAME: &str = "chat_template";
/// Work one rendering may do: about as many instructions, or 64 times as many bytes of text.
const FUEL: u64 = 4_000_000;
/// Nested calls of macros; small enough for a 2 MiB stack.
const RECURSION: usize = 120;

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
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    bos: String,
    eos: String,
}

impl std::fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// What `raise_exception` said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

impl ChatTemplate {
    /// Compiles `tokenizer.chat_template`; `Ok(None)` when the file has none.
    pub fn from_metadata(meta: &Metadata) -> Result<Option<Self>, TemplateError> {
        let fail = |error: crate::formats::gguf::GgufError| TemplateError {
            message: error.to_string(),
        };
        let Some(source) = meta.opt_str("tokenizer.chat_template").map_err(fail)? else {
            return Ok(None);
        };
        let tokens = meta
            .opt_strings("tokenizer.ggml.tokens")
            .map_err(fail)?
            .unwrap_or_default();
        let text = |key: &str| -> Result<&str, TemplateError> {
            let id = meta.opt_u32(key).map_err(fail)?;
            Ok(id
                .and_then(|id| tokens.get(id as usize).copied())
                .unwrap_or_default())
        };
        let bos = text("tokenizer.ggml.bos_token_id")?;
        let eos = text("tokenizer.ggml.eos_token_id")?;
        Self::new(source, bos, eos).map(Some)
    }

    /// Compiles a template from text.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self, TemplateError> {
        Self::with_clock(source, bos, eos, clock::unix_seconds_now)
    }

    /// The same, with the time that `strftime_now` tells, in seconds since 1970 (UTC).
    pub fn with_clock(
        source: &str,
        bos: &str,
        eos: &str,
        now: impl Fn() -> i64 + Send + Sync + 'static,
    ) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|error| explain(&error))?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(RECURSION);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_formatter(|out, _, value| {
            out.write_str(&python_text::display(value))
                .map_err(Error::from)
        });
        environment.add_filter("tojson", python_text::tojson);
        environment.add_filter("escape", python_text::escape);
        environment.add_filter("e", python_text::escape);
        environment.add_test("sequence", python_text::is_sequence);
        environment.add_filter("string", |value: &Value| python_text::display(value));
        environment.add_function(
            "raise_exception",
            |message: &Value| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, "raise_exception")
                    .with_source(Raised(message.to_string())))
            },
        );
        environment.add_function("strftime_now", move |format: &str| {
            clock::strftime(format, now())
        });
        environment
            .add_template_owned(NAME, without_generation_tags(source))
            .map_err(|error| explain(&error))?;
        Ok(Self {
            environment,
            source: source.to_owned(),
            bos: bos.to_owned(),
            eos: eos.to_owned(),
        })
    }

    /// Renders a conversation.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<String, TemplateError> {
        let messages: Vec<Value> = input
            .messages
            .iter()
            .map(|message| to_value(&normalise(message)))
            .collect();
        let list = |items: &[serde_json::Value]| {
            Value::from(items.iter().map(to_value).collect::<Vec<Value>>())
        };
        let mut variables = vec![
            ("messages", Value::from(messages)),
            // As in `transformers`, these are defined and none when not given.
            ("tools", input.tools.map_or_else(|| Value::from(()), list)),
            ("documents", Value::from(())),
            (
                "add_generation_prompt",
                Value::from(input.add_generation_prompt),
            ),
            ("bos_token", Value::from(self.bos.as_str())),
            ("eos_token", Value::from(self.eos.as_str())),
        ];
        if let Some(effort) = input.reasoning_effort {
            variables.push(("reasoning_effort", Value::from(effort)));
        }
        let extra = input.extra.into_iter().flatten();
        variables.extend(extra.map(|(key, value)| (key.as_str(), to_value(value))));
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(Value::from_pairs(variables)))
            .map_err(|error| explain(&error))
    }

    /// The template's source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it writes harmony (`<|channel|>` in its source).
    pub fn is_harmony(&self) -> bool {
        self.source.contains("<|channel|>")
    }
}

/// The engine's error as one line, or the template's own words.
fn explain(error: &Error) -> TemplateError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut innermost = error;
    while let Some(current) = cause {
        if let Some(Raised(message)) = current.downcast_ref() {
            return TemplateError {
                message: message.clone(),
            };
        }
        if let Some(inner) = current.downcast_ref::<Error>() {
            innermost = inner;
        }
        cause = current.source();
    }
    let mut message = innermost.kind().to_string();
    if let Some(detail) = innermost.detail() {
        message += ": ";
        message += detail;
    }
    if let Some(line) = innermost.line() {
        message = format!("{message} (line {line})");
    }
    TemplateError { message }
}

/// Replaces `{% generation %}` and `{% endgeneration %}`, which mark assistant text for training
/// and print nothing, by an `if true` with the same white-space control.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        out.push_str("{%");
        rest = &tag[2..];
        let Some(end) = rest.find("%}") else { continue };
        let inside = &rest[..end];
        let word = inside.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        let replacement = match word {
            "generation" => "if true",
            "endgeneration" => "endif",
            _ => continue,
        };
        out.push_str(&inside.replace(word, replacement));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::gguf::Value as Meta;

    #[test]
    fn the_template_and_its_tokens_come_from_the_file() {
        let text = |s: &str| Meta::String(s.to_owned());
        let mut entries = vec![
            (
                "tokenizer.ggml.tokens".to_owned(),
                Meta::Array(vec![text("<s>"), text("</s>")]),
            ),
            ("tokenizer.ggml.bos_token_id".to_owned(), Meta::U32(0)),
            ("tokenizer.ggml.eos_token_id".to_owned(), Meta::U32(1)),
        ];
        let read = |entries: &Vec<(String, Meta)>| {
            let meta = Metadata::from_entries(entries.clone()).expect("no key comes twice");
            ChatTemplate::from_metadata(&meta)
        };
        assert!(read(&entries).expect("nothing is wrong").is_none());
        let source = "{{ bos_token }}{{ eos_token }}{{ messages | length }}";
        entries.push(("tokenizer.chat_template".to_owned(), text(source)));
        let template = read(&entries).expect("it compiles").expect("it is there");
        let prompt = template
            .render(&RenderInput::default())
            .expect("it renders");
        assert_eq!(prompt, "<s></s>0");
        entries[3].1 = text("{% if %}");
        assert!(read(&entries).is_err());
    }

    #[test]
    fn generation_tags_are_replaced_with_their_white_space_control() {
        let source = "{%- generation -%}a{% b %}{%endgeneration%}{% unclosed";
        let replaced = "{%- if true -%}a{% b %}{%endif%}{% unclosed";
        assert_eq!(without_generation_tags(source), replaced);
    }
}
