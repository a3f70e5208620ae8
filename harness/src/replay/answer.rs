//! What chunks of an answer hold, over the dialects: OpenAI chat and text completions,
//! llama-server's `/completion`, and palindrome-engine's additions.

use serde_json::Value;

use super::{EngineTimings, TokenSource};

/// One chunk's share of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Piece {
    /// Visible text.
    content: String,
    /// Reasoning text.
    reasoning: String,
    /// Tool calls' ids, names and arguments, in order.
    tool_text: String,
    /// Token ids, where the server shows them.
    ids: Option<Vec<u32>>,
    /// The server's count of tokens generated up to here, where every chunk carries `timings`.
    predicted_n: Option<u64>,
}

impl Piece {
    /// Reads a chunk of a stream, or a whole response: both have the same places.
    pub(super) fn of_chunk(chunk: &Value) -> Self {
        let choice = &chunk["choices"][0];
        let delta = if choice["delta"].is_object() {
            &choice["delta"]
        } else {
            &choice["message"]
        };
        let text = |v: &Value| v.as_str().unwrap_or("").to_owned();
        let mut content = text(&delta["content"]);
        // Text completions, then llama-server's own route.
        content.push_str(&text(&choice["text"]));
        if chunk.get("choices").is_none() {
            content.push_str(&text(&chunk["content"]));
        }
        let mut reasoning = text(&delta["reasoning_content"]);
        if reasoning.is_empty() {
            reasoning = text(&delta["reasoning"]);
        }
        let mut tool_text = String::new();
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            for part in [&call["function"]["name"], &call["function"]["arguments"]] {
                tool_text.push_str(part.as_str().unwrap_or(""));
            }
        }
        let ids = [
            &chunk["tokens"],
            &choice["tokens"],
            &delta["tokens"],
            &chunk["__verbose"]["tokens"],
        ]
        .into_iter()
        .find_map(ids_of);
        let predicted_n = chunk["timings"]["predicted_n"].as_u64();
        Self {
            content,
            reasoning,
            tool_text,
            ids,
            predicted_n,
        }
    }

    /// Whether it carries generated tokens; a bare role or a finish reason does not.
    pub(super) fn bears_tokens(&self) -> bool {
        self.shows_content()
            || !self.reasoning.is_empty()
            || self.ids.as_ref().is_some_and(|ids| !ids.is_empty())
    }

    /// Whether it carries visible answer.
    pub(super) fn shows_content(&self) -> bool {
        !self.content.is_empty() || !self.tool_text.is_empty()
    }

    /// Tokens generated up to and including this piece when it is the first: its ids, else the
    /// server's running count (`timings_per_token`), which also counts tokens that were held back
    /// before it, else one by assumption.
    pub(super) fn tokens_so_far(&self) -> (u64, TokenSource) {
        match (&self.ids, self.predicted_n) {
            (Some(ids), _) if !ids.is_empty() => (ids.len() as u64, TokenSource::StreamIds),
            (_, Some(n)) if n > 0 => (n, TokenSource::Usage),
            _ => (1, TokenSource::Events),
        }
    }
}

/// Token ids, if the value is an array of nothing else.
fn ids_of(value: &Value) -> Option<Vec<u32>> {
    value
        .as_array()?
        .iter()
        .map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()))
        .collect()
}

/// An answer, added up over its chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) content: String,
    pub(super) reasoning: String,
    pub(super) tool_text: String,
    pub(super) ids: Vec<u32>,
    pub(super) saw_ids: bool,
    pub(super) finish_reason: Option<String>,
    /// Ended by `stop: true` of `/completion`, which sends no `[DONE]`.
    pub(super) plain_stop: bool,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) tokens_evaluated: Option<u64>,
    pub(super) prompt_hash: Option<String>,
    pub(super) generated_hash: Option<String>,
    pub(super) engine: Option<EngineTimings>,
}

impl Answer {
    /// Adds a chunk. Figures that are repeated (usage, timings) are the last chunk's.
    pub(super) fn add(&mut self, piece: &Piece, chunk: &Value) {
        self.content.push_str(&piece.content);
        self.reasoning.push_str(&piece.reasoning);
        self.tool_text.push_str(&piece.tool_text);
        if let Some(ids) = piece.ids.as_ref().filter(|ids| !ids.is_empty()) {
            self.ids.extend(ids);
            self.saw_ids = true;
        }
        if let Some(reason) = chunk["choices"][0]["finish_reason"].as_str() {
            self.finish_reason = Some(reason.to_owned());
        } else if chunk.get("choices").is_none() && chunk["stop"] == Value::Bool(true) {
            self.finish_reason = Some(chunk["stop_type"].as_str().unwrap_or("stop").to_owned());
            self.plain_stop = true;
        }
        let usage = &chunk["usage"];
        replace(&mut self.prompt_tokens, usage["prompt_tokens"].as_u64());
        replace(
            &mut self.completion_tokens,
            usage["completion_tokens"].as_u64(),
        );
        replace(
            &mut self.completion_tokens,
            chunk["tokens_predicted"].as_u64(),
        );
        replace(
            &mut self.cached_tokens,
            usage["prompt_tokens_details"]["cached_tokens"].as_u64(),
        );
        replace(
            &mut self.tokens_evaluated,
            chunk["tokens_evaluated"].as_u64().filter(|&n| n > 0),
        );
        let hash = |v: &Value| v.as_str().map(str::to_owned);
        replace(
            &mut self.prompt_hash,
            hash(&chunk["token_hashes"]["prompt"]),
        );
        replace(
            &mut self.generated_hash,
            hash(&chunk["token_hashes"]["generated"]),
        );
        let timings = &chunk["timings"];
        if timings.is_object() {
            self.engine = Some(EngineTimings {
                cache_n: timings["cache_n"].as_u64(),
                prompt_n: timings["prompt_n"].as_u64(),
                prompt_ms: timings["prompt_ms"].as_f64(),
                predicted_n: timings["predicted_n"].as_u64(),
                predicted_ms: timings["predicted_ms"].as_f64(),
            });
        }
    }

    /// Where the server contradicts its own stream.
    pub(super) fn contradiction(&self) -> Option<String> {
        let said = self.generated_hash.as_ref()?;
        let found = super::hash::token_hash(&self.ids);
        (self.saw_ids && *said != found).then(|| {
            format!("the server's token hash {said} is not that of the ids it sent, {found}")
        })
    }
}

fn replace<T>(slot: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *slot = new;
    }
}
