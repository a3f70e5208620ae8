//! Log-probabilities in OpenAI's and llama-server's shapes.

use serde_json::{Value, json};

use crate::scheduler::TokenEvent;
use crate::tokenizer::Tokenizer;

/// One entry of `logprobs.content` (chat) and of `completion_probabilities`.
pub fn entry(tokenizer: &Tokenizer, token: &TokenEvent) -> Value {
    let top: Vec<Value> = token
        .top
        .iter()
        .map(|(id, logprob)| one(tokenizer, *id, Some(*logprob)))
        .collect();
    let mut out = one(tokenizer, token.id, token.logprob);
    out["top_logprobs"] = json!(top);
    out
}

fn one(tokenizer: &Tokenizer, id: u32, logprob: Option<f32>) -> Value {
    let bytes = tokenizer.token_bytes(id);
    json!({
        "id": id,
        "token": String::from_utf8_lossy(bytes),
        "bytes": bytes,
        "logprob": logprob,
    })
}

/// OpenAI's older shape of `/v1/completions`: parallel lists.
#[derive(Debug, Default)]
pub struct Lists {
    tokens: Vec<Value>,
    token_logprobs: Vec<Value>,
    top_logprobs: Vec<Value>,
    text_offset: Vec<usize>,
}

impl Lists {
    /// Adds a token whose text begins at `offset` characters.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: &TokenEvent, offset: usize) {
        let text = |id: u32| String::from_utf8_lossy(tokenizer.token_bytes(id)).into_owned();
        self.tokens.push(json!(text(token.id)));
        self.token_logprobs.push(json!(token.logprob));
        let mut top = serde_json::Map::new();
        for (id, logprob) in &token.top {
            top.insert(text(*id), json!(logprob));
        }
        self.top_logprobs.push(Value::Object(top));
        self.text_offset.push(offset);
    }
    /// Gives the lists and starts again.
    pub fn take(&mut self) -> Value {
        let lists = std::mem::take(self);
        json!({
            "tokens": lists.tokens,
            "token_logprobs": lists.token_logprobs,
            "top_logprobs": lists.top_logprobs,
            "text_offset": lists.text_offset,
        })
    }
}
