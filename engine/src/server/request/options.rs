//! What chat and completion requests have in common: sampling, limits, stops, extras.

use serde_json::Value;

use super::fields::{Fields, short, wrong};
use super::neutral;
use crate::sampling::SamplingParams;
use crate::scheduler::GenRequest;
use crate::server::{ApiError, Backend};
use crate::tokenizer::Tokenizer;

/// The names read here.
pub const NAMES: &[&str] = &[
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "seed",
    "stop",
    "max_tokens",
    "max_completion_tokens",
    "n_predict",
    "logit_bias",
    "presence_penalty",
    "frequency_penalty",
    "samplers",
    "cache_prompt",
    "ignore_eos",
    "return_tokens",
    "timings_per_token",
    "stream",
    "stream_options",
];

/// Most alternatives that may be asked for.
pub const MAX_TOP_LOGPROBS: i64 = 100;
/// Most stop strings.
const MAX_STOPS: usize = 64;
/// The order in which the samplers work here, in llama-server's words.
const SAMPLER_ORDER: [&str; 5] = ["penalties", "temperature", "top_k", "top_p", "min_p"];

/// Whether and how log-probabilities are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logprobs {
    /// Alternatives beside the chosen token.
    pub top: usize,
}

/// The common part of a request.
#[derive(Clone, Debug)]
pub struct Common {
    /// Sampling, with the seed always set.
    pub sampling: SamplingParams,
    /// Limit on generated tokens; `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// Stop strings, none empty.
    pub stops: Vec<String>,
    /// Re-use K/V of earlier requests.
    pub cache_prompt: bool,
    /// Go on past end-of-generation tokens.
    pub ignore_eos: bool,
    /// Report token ids.
    pub return_tokens: bool,
    /// Put the figures so far into every event of a stream.
    pub timings_per_token: bool,
    /// Send events as they come.
    pub stream: bool,
    /// Send a usage chunk at the end of a stream.
    pub include_usage: bool,
}

impl Common {
    /// Reads and validates.
    pub fn read(fields: Fields<'_>, tokenizer: &Tokenizer) -> Result<Self, ApiError> {
        neutral::check(fields)?;
        let sampling = sampling(fields, tokenizer)?;
        samplers(fields, &sampling)?;
        let stream = fields.bool("stream")?.unwrap_or(false);
        Ok(Self {
            sampling,
            max_tokens: max_tokens(fields)?,
            stops: stops(fields)?,
            cache_prompt: fields.bool("cache_prompt")?.unwrap_or(true),
            ignore_eos: fields.bool("ignore_eos")?.unwrap_or(false),
            return_tokens: fields.bool("return_tokens")?.unwrap_or(false),
            timings_per_token: fields.bool("timings_per_token")?.unwrap_or(false),
            stream,
            include_usage: include_usage(fields, stream)?,
        })
    }
    /// The generation to run.
    pub fn generation(
        &self,
        backend: &dyn Backend,
        prompt: Vec<u32>,
        logprobs: Option<Logprobs>,
    ) -> Result<GenRequest, ApiError> {
        if prompt.is_empty() {
            return Err(ApiError::invalid("the prompt is empty"));
        }
        if prompt.len() >= backend.n_ctx() {
            return Err(ApiError::context(prompt.len(), backend.n_ctx()));
        }
        let tokenizer = backend.tokenizer();
        let mut sampling = self.sampling.clone();
        let mut stop_tokens = tokenizer.end_of_generation().to_vec();
        if self.ignore_eos {
            let never = stop_tokens.drain(..).map(|id| (id, f32::NEG_INFINITY));
            sampling.logit_bias.extend(never);
        }
        // A stop string that is the name of a special token never shows up as text.
        stop_tokens.extend(
            self.stops
                .iter()
                .filter_map(|stop| tokenizer.id_of(stop))
                .filter(|id| tokenizer.is_special(*id)),
        );
        Ok(GenRequest {
            prompt,
            max_tokens: self.max_tokens,
            sampling,
            stop_tokens,
            cache_prompt: self.cache_prompt,
            logprobs: logprobs.map(|asked| asked.top),
        })
    }
}

fn sampling(fields: Fields<'_>, tokenizer: &Tokenizer) -> Result<SamplingParams, ApiError> {
    let default = SamplingParams::default();
    Ok(SamplingParams {
        temperature: fields
            .float("temperature", 0.0..=100.0)?
            .unwrap_or(default.temperature),
        top_k: fields
            .int("top_k", -1..=i64::from(u32::MAX))?
            .map_or(default.top_k, |k| k.max(0) as u32),
        top_p: fields.float("top_p", 0.0..=1.0)?.unwrap_or(default.top_p),
        min_p: fields.float("min_p", 0.0..=1.0)?.unwrap_or(default.min_p),
        seed: Some(seed(fields)?),
        logit_bias: logit_bias(fields, tokenizer)?,
        presence_penalty: fields
            .float("presence_penalty", -2.0..=2.0)?
            .unwrap_or(default.presence_penalty),
        frequency_penalty: fields
            .float("frequency_penalty", -2.0..=2.0)?
            .unwrap_or(default.frequency_penalty),
    })
}

/// -1 and 2^32 - 1 ask for a fresh seed, as in llama-server.
fn seed(fields: Fields<'_>) -> Result<u64, ApiError> {
    let Some(value) = fields.get("seed") else {
        return Ok(fresh_seed());
    };
    if value.as_i64() == Some(-1) || value.as_u64() == Some(u64::from(u32::MAX)) {
        return Ok(fresh_seed());
    }
    value
        .as_u64()
        .or_else(|| value.as_i64().map(i64::cast_unsigned))
        .ok_or_else(|| wrong("seed", "an integer", value))
}

/// 53 bits, so that every JSON reader can give it back exactly.
fn fresh_seed() -> u64 {
    random_u64() >> 11
}

/// Unpredictable bits from the standard library's own random state.
pub fn random_u64() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}

fn max_tokens(fields: Fields<'_>) -> Result<Option<usize>, ApiError> {
    let mut limit: Option<(&str, i64)> = None;
    for name in ["max_completion_tokens", "max_tokens", "n_predict"] {
        let Some(number) = fields.int(name, -1..=i64::from(u32::MAX))? else {
            continue;
        };
        if number == 0 {
            return Err(ApiError::invalid(format!(
                "`{name}` must be at least 1, or -1 for no limit, got 0"
            )));
        }
        match limit {
            Some((first, other)) if other != number => {
                return Err(ApiError::invalid(format!(
                    "`{first}` and `{name}` contradict each other: {other} and {number}"
                )));
            }
            _ => limit = Some((name, number)),
        }
    }
    Ok(limit.and_then(|(_, number)| usize::try_from(number).ok()))
}

fn stops(fields: Fields<'_>) -> Result<Vec<String>, ApiError> {
    let Some(value) = fields.get("stop") else {
        return Ok(Vec::new());
    };
    let expected = "a string or a list of strings, none of them empty";
    let stops = match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| wrong("stop", expected, value))?,
        _ => return Err(wrong("stop", expected, value)),
    };
    if stops.iter().any(String::is_empty) {
        return Err(wrong("stop", expected, value));
    }
    if stops.len() > MAX_STOPS {
        return Err(ApiError::invalid(format!(
            "`stop` has {} strings; at most {MAX_STOPS} are taken",
            stops.len()
        )));
    }
    Ok(stops)
}

fn logit_bias(fields: Fields<'_>, tokenizer: &Tokenizer) -> Result<Vec<(u32, f32)>, ApiError> {
    let Some(value) = fields.get("logit_bias") else {
        return Ok(Vec::new());
    };
    let expected = "an object of token ids and numbers, or a list of [id, number or false]";
    let pairs: Option<Vec<(u64, f32)>> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(id, bias)| Some((id.parse().ok()?, bias_of(bias)?)))
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| match item.as_array()?.as_slice() {
                [id, bias] => Some((id.as_u64()?, bias_of(bias)?)),
                _ => None,
            })
            .collect(),
        _ => None,
    };
    let pairs = pairs.ok_or_else(|| wrong("logit_bias", expected, value))?;
    let vocab = tokenizer.vocab_size();
    pairs
        .into_iter()
        .map(|(id, bias)| match u32::try_from(id) {
            Ok(small) if (small as usize) < vocab => Ok((small, bias)),
            _ => Err(ApiError::invalid(format!(
                "`logit_bias`: token id {id} is outside the vocabulary of {vocab}"
            ))),
        })
        .collect()
}

fn bias_of(value: &Value) -> Option<f32> {
    match value {
        Value::Bool(false) => Some(f32::NEG_INFINITY),
        other => other
            .as_f64()
            .map(|number| number as f32)
            .filter(|number| number.is_finite()),
    }
}

/// `samplers` sets an order in llama-server; here it is fixed. Under greedy decoding no order
/// changes the choice.
fn samplers(fields: Fields<'_>, sampling: &SamplingParams) -> Result<(), ApiError> {
    let Some(value) = fields.get("samplers") else {
        return Ok(());
    };
    let names: Option<Vec<&str>> = value
        .as_array()
        .and_then(|items| items.iter().map(Value::as_str).collect());
    let names = names.ok_or_else(|| wrong("samplers", "a list of names", value))?;
    if sampling.temperature <= 0.0 || names == SAMPLER_ORDER {
        return Ok(());
    }
    Err(ApiError::invalid(format!(
        "`samplers` is not supported yet: the order here is {SAMPLER_ORDER:?}, got {}",
        short(value)
    )))
}

fn include_usage(fields: Fields<'_>, stream: bool) -> Result<bool, ApiError> {
    let Some(value) = fields.get("stream_options") else {
        return Ok(false);
    };
    if !stream {
        return Err(ApiError::invalid(
            "`stream_options` is only allowed with `stream`: true",
        ));
    }
    let options = Fields::new(value, &[&["include_usage", "include_obfuscation"]])
        .map_err(|error| ApiError::invalid(format!("`stream_options`: {}", error.message())))?;
    Ok(options.bool("include_usage")?.unwrap_or(false))
}
