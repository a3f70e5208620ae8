//! `/v1/completions` (OpenAI's shape) and `/completion` (llama-server's).

use serde_json::Value;

use super::fields::{Fields, short};
use super::neutral;
use super::options::{Common, Logprobs, MAX_TOP_LOGPROBS, NAMES};
use crate::scheduler::GenRequest;
use crate::server::{ApiError, Backend};
use crate::tokenizer::{Specials, Tokenizer};

/// Whose shape a completion has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/completions`.
    OpenAi,
    /// `/completion`.
    Llama,
}

/// A validated completion request.
#[derive(Debug)]
pub struct CompletionBody {
    /// The common part.
    pub common: Common,
    /// Log-probabilities asked for.
    pub logprobs: Option<Logprobs>,
    /// The generation.
    pub generation: GenRequest,
}

impl CompletionBody {
    /// Validates the body and tokenizes.
    pub fn read(body: &Value, backend: &dyn Backend, dialect: Dialect) -> Result<Self, ApiError> {
        let own: &[&str] = match dialect {
            Dialect::OpenAi => &["prompt", "logprobs"],
            Dialect::Llama => &["prompt", "n_probs"],
        };
        let fields = Fields::new(body, &[own, NAMES, &neutral::names()])?;
        let tokenizer = backend.tokenizer();
        let common = Common::read(fields, tokenizer)?;
        let name = match dialect {
            Dialect::OpenAi => "logprobs",
            Dialect::Llama => "n_probs",
        };
        let top = fields.int(name, 0..=MAX_TOP_LOGPROBS)?;
        let logprobs = match dialect {
            Dialect::OpenAi => top,
            Dialect::Llama => top.filter(|top| *top > 0),
        }
        .map(|top| Logprobs { top: top as usize });
        let prompt = prompt(fields, tokenizer)?;
        let generation = common.generation(backend, prompt, logprobs)?;
        Ok(Self {
            common,
            logprobs,
            generation,
        })
    }
}

/// Text to ids, special tokens parsed and the beginning-of-sequence token in front where the
/// model wants one and the text does not bring it.
pub fn encode_text(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let mut ids = tokenizer.encode(text, Specials::Parse);
    if let Some(bos) = tokenizer.bos_to_add()
        && ids.first() != Some(&bos)
    {
        ids.insert(0, bos);
    }
    ids
}

/// A string, a list of token ids, or a list that mixes both.
fn prompt(fields: Fields<'_>, tokenizer: &Tokenizer) -> Result<Vec<u32>, ApiError> {
    let expected = "a string, a list of token ids, or a list of both";
    let value = fields
        .get("prompt")
        .ok_or_else(|| ApiError::invalid(format!("`prompt` is missing; expected {expected}")))?;
    let items = match value {
        Value::String(text) => return Ok(encode_text(tokenizer, text)),
        Value::Array(items) => items,
        _ => {
            return Err(ApiError::invalid(format!(
                "`prompt` must be {expected}, got {}",
                short(value)
            )));
        }
    };
    let strings = items.iter().filter(|item| item.is_string()).count();
    if items.iter().any(Value::is_array) || (strings > 1 && strings == items.len()) {
        return Err(ApiError::invalid(
            "`prompt`: several prompts in one request are not supported yet",
        ));
    }
    let mut ids = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if let Some(text) = item.as_str() {
            if index == 0 {
                ids.extend(encode_text(tokenizer, text));
            } else {
                ids.extend(tokenizer.encode(text, Specials::Parse));
            }
            continue;
        }
        let id = item
            .as_u64()
            .and_then(|id| u32::try_from(id).ok())
            .filter(|id| (*id as usize) < tokenizer.vocab_size());
        ids.push(id.ok_or_else(|| {
            ApiError::invalid(format!(
                "`prompt[{index}]` must be a token id below {} or a string, got {}",
                tokenizer.vocab_size(),
                short(item)
            ))
        })?);
    }
    Ok(ids)
}
