//! llama-server's own shape (`/completion`).

use serde_json::{Value, json};

use super::Reply;
use super::completion::content;
use super::logprobs::entry;
use super::timings::close;
use crate::sampling::SamplingParams;
use crate::server::generation::{Outcome, Step, StopReason};
use crate::tokenizer::Tokenizer;

/// What is fixed for one response.
#[derive(Debug)]
pub struct NativeReply {
    /// The model's name.
    pub model: String,
    /// The prompt as the model sees it.
    pub prompt: String,
    /// The prompt's tokens.
    pub prompt_tokens: usize,
    /// As used.
    pub sampling: SamplingParams,
    /// As used; `None`: no limit.
    pub max_tokens: Option<usize>,
    /// Stop strings.
    pub stops: Vec<String>,
    /// Whether it streams.
    pub stream: bool,
    /// Report token ids.
    pub return_tokens: bool,
    /// Alternatives a token.
    pub n_probs: Option<usize>,
    /// The slot that works on it.
    pub slot: usize,
    /// Tokens so far.
    pub predicted: usize,
    /// Entries of tokens that no event stands for yet.
    pub waiting: Vec<Value>,
}

impl NativeReply {
    fn event(&mut self, text: &str, tokens: &[u32]) -> Value {
        let mut out = json!({
            "index": 0,
            "content": text,
            "tokens": tokens,
            "stop": false,
            "id_slot": self.slot,
            "tokens_predicted": self.predicted,
            "tokens_evaluated": self.prompt_tokens,
        });
        if self.n_probs.is_some() {
            out["completion_probabilities"] = json!(std::mem::take(&mut self.waiting));
        }
        out
    }
    fn last(&mut self, text: &str, tokens: &[u32], outcome: &Outcome) -> Value {
        let (kind, word) = match &outcome.stop {
            StopReason::EndOfGeneration => ("eos", ""),
            StopReason::Word(word) => ("word", word.as_str()),
            StopReason::Length => ("limit", ""),
        };
        self.predicted = outcome.figures.predicted_n;
        self.slot = outcome.slot;
        let mut out = self.event(text, tokens);
        out["stop"] = json!(true);
        out["model"] = json!(self.model);
        out["generation_settings"] = self.settings();
        out["prompt"] = json!(self.prompt);
        out["has_new_line"] = json!(text.contains('\n'));
        out["truncated"] = json!(false);
        out["stop_type"] = json!(kind);
        out["stopping_word"] = json!(word);
        out["tokens_cached"] = json!(outcome.figures.cache_n);
        close(&mut out, &outcome.figures);
        out
    }
    fn settings(&self) -> Value {
        let mut out = settings(&self.sampling);
        let limit = self.max_tokens.map_or(json!(-1), |limit| json!(limit));
        out["n_predict"] = limit.clone();
        out["max_tokens"] = limit;
        out["stop"] = json!(self.stops);
        out["stream"] = json!(self.stream);
        out["n_probs"] = json!(self.n_probs.unwrap_or(0));
        out
    }
}

/// Sampling settings in llama-server's names.
pub fn settings(sampling: &SamplingParams) -> Value {
    let bias: Vec<Value> = sampling
        .logit_bias
        .iter()
        .map(|(id, bias)| {
            let bias = if bias.is_finite() {
                json!(bias)
            } else {
                json!(false)
            };
            json!({ "token": id, "bias": bias })
        })
        .collect();
    json!({
        "seed": sampling.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "logit_bias": bias,
    })
}

impl Reply for NativeReply {
    fn step(&mut self, tokenizer: &Tokenizer, step: Step) -> Vec<Value> {
        self.predicted += 1;
        self.slot = step.slot;
        let text = content(step.deltas);
        if self.n_probs.is_some() {
            self.waiting.push(entry(tokenizer, &step.token));
        }
        if text.is_empty() && !self.return_tokens && self.predicted > 1 {
            return Vec::new();
        }
        let tokens = if self.return_tokens {
            vec![step.token.id]
        } else {
            Vec::new()
        };
        vec![self.event(&text, &tokens)]
    }
    fn end(&mut self, _tokenizer: &Tokenizer, mut outcome: Outcome) -> Vec<Value> {
        let text = content(std::mem::take(&mut outcome.deltas));
        vec![self.last(&text, &[], &outcome)]
    }
    fn whole(&mut self, tokenizer: &Tokenizer, steps: Vec<Step>, mut outcome: Outcome) -> Value {
        let mut text = String::new();
        let mut tokens = Vec::new();
        for step in steps {
            if self.n_probs.is_some() {
                self.waiting.push(entry(tokenizer, &step.token));
            }
            if self.return_tokens {
                tokens.push(step.token.id);
            }
            text.push_str(&content(step.deltas));
        }
        text.push_str(&content(std::mem::take(&mut outcome.deltas)));
        self.last(&text, &tokens, &outcome)
    }
    fn ends_in_done(&self) -> bool {
        false
    }
}
