//! `/v1/chat/completions` and `/apply-template`.

use serde_json::{Map, Value};

use super::completion::encode_text;
use super::fields::{Fields, short, wrong};
use super::messages::messages;
use super::neutral;
use super::options::{Common, Logprobs, MAX_TOP_LOGPROBS, NAMES};
use crate::chat::{ChatTemplate, RenderInput};
use crate::scheduler::GenRequest;
use crate::server::{ApiError, Backend};

const CHAT_NAMES: &[&str] = &[
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "chat_template_kwargs",
    "add_generation_prompt",
    "response_format",
    "modalities",
    "logprobs",
    "top_logprobs",
];

/// A validated chat request.
#[derive(Debug)]
pub struct ChatBody {
    /// The common part.
    pub common: Common,
    /// Log-probabilities asked for.
    pub logprobs: Option<Logprobs>,
    /// The generation.
    pub generation: GenRequest,
}

impl ChatBody {
    /// Validates the body, renders the template and tokenizes.
    pub fn read(body: &Value, backend: &dyn Backend) -> Result<Self, ApiError> {
        let fields = all_fields(body)?;
        let common = Common::read(fields, backend.tokenizer())?;
        response_format(fields)?;
        modalities(fields)?;
        let logprobs = logprobs(fields)?;
        let prompt = render(fields, backend)?;
        let prompt = encode_text(backend.tokenizer(), &prompt);
        let generation = common.generation(backend, prompt, logprobs)?;
        Ok(Self {
            common,
            logprobs,
            generation,
        })
    }
}

/// What `/apply-template` gives back. It takes any chat body, so that the one that is sent can
/// be the one that is looked at.
pub fn render_prompt(body: &Value, backend: &dyn Backend) -> Result<String, ApiError> {
    render(all_fields(body)?, backend)
}

fn all_fields(body: &Value) -> Result<Fields<'_>, ApiError> {
    Fields::new(body, &[CHAT_NAMES, NAMES, &neutral::names()])
}

fn render(fields: Fields<'_>, backend: &dyn Backend) -> Result<String, ApiError> {
    let template = backend.template().ok_or_else(|| {
        ApiError::unsupported("the model file has no chat template; use /completion")
    })?;
    let messages = messages(fields)?;
    let tools = tools(fields, template)?;
    let effort = match fields.str("reasoning_effort")? {
        None => None,
        Some(effort @ ("low" | "medium" | "high")) => Some(effort),
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "`reasoning_effort` must be \"low\", \"medium\" or \"high\", got {other:?}"
            )));
        }
    };
    let extra: Option<&Map<String, Value>> = fields.object("chat_template_kwargs")?;
    let input = RenderInput {
        messages: &messages,
        tools: tools.as_deref(),
        add_generation_prompt: fields.bool("add_generation_prompt")?.unwrap_or(true),
        reasoning_effort: effort,
        extra,
    };
    Ok(template.render(&input)?)
}

/// The tools to show to the model; none when there are none or the choice is "none".
fn tools(fields: Fields<'_>, template: &ChatTemplate) -> Result<Option<Vec<Value>>, ApiError> {
    fields.bool("parallel_tool_calls")?;
    let list = fields.array("tools")?.unwrap_or_default();
    for (index, tool) in list.iter().enumerate() {
        let is_function = tool.get("type").and_then(Value::as_str) == Some("function");
        let named = tool
            .get("function")
            .and_then(|function| function.get("name"))
            .is_some_and(Value::is_string);
        if !is_function || !named {
            return Err(ApiError::invalid(format!(
                "`tools[{index}]` must be {{\"type\": \"function\", \"function\": {{\"name\", \
                 \"parameters\"}}}}, got {}",
                short(tool)
            )));
        }
    }
    let shown = match fields.get("tool_choice") {
        None => true,
        Some(Value::String(choice)) if choice == "auto" => true,
        Some(Value::String(choice)) if choice == "none" => false,
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "`tool_choice` is not supported yet beyond \"auto\" and \"none\", got {}",
                short(other)
            )));
        }
    };
    if list.is_empty() || !shown {
        return Ok(None);
    }
    if !template.is_harmony() {
        return Err(ApiError::unsupported(
            "`tools`: this model's chat template is not harmony, the only one whose tool calls \
             are understood yet",
        ));
    }
    Ok(Some(list.to_vec()))
}

fn response_format(fields: Fields<'_>) -> Result<(), ApiError> {
    let Some(format) = fields.object("response_format")? else {
        return Ok(());
    };
    match format.get("type") {
        Some(Value::String(kind)) if kind == "text" => Ok(()),
        Some(Value::String(kind)) if kind == "json_object" || kind == "json_schema" => {
            Err(ApiError::invalid(format!(
                "`response_format` of type {kind:?} is not supported yet; only \"text\" is"
            )))
        }
        other => Err(wrong(
            "response_format.type",
            "\"text\"",
            other.unwrap_or(&Value::Null),
        )),
    }
}

fn modalities(fields: Fields<'_>) -> Result<(), ApiError> {
    match fields.array("modalities")? {
        None => Ok(()),
        Some([only]) if only == "text" => Ok(()),
        Some(other) => Err(wrong(
            "modalities",
            "[\"text\"]",
            &Value::Array(other.to_vec()),
        )),
    }
}

fn logprobs(fields: Fields<'_>) -> Result<Option<Logprobs>, ApiError> {
    let wanted = fields.bool("logprobs")?.unwrap_or(false);
    let top = fields.int("top_logprobs", 0..=MAX_TOP_LOGPROBS)?;
    match (wanted, top) {
        (true, top) => Ok(Some(Logprobs {
            top: top.unwrap_or(0) as usize,
        })),
        (false, Some(top)) if top > 0 => Err(ApiError::invalid(
            "`top_logprobs` is only allowed with `logprobs`: true",
        )),
        (false, _) => Ok(None),
    }
}
