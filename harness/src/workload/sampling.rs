//! Every sampling field spelled out: servers differ in their defaults, so a body leaves none to
//! them.

use serde_json::{Map, Value, json};

/// The fields that an imported body gets. What stands in them by default chooses the likeliest
/// token and switches everything else off.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// `temperature`; 0 chooses the likeliest token.
    pub temperature: f64,
    /// `top_k`; 0 is off.
    pub top_k: u32,
    /// `top_p`; 1 is off.
    pub top_p: f64,
    /// `min_p`; 0 is off.
    pub min_p: f64,
    /// `seed`.
    pub seed: u64,
    /// `repeat_penalty`; 1 is off.
    pub repeat_penalty: f64,
    /// `presence_penalty`; 0 is off.
    pub presence_penalty: f64,
    /// `frequency_penalty`; 0 is off.
    pub frequency_penalty: f64,
    /// `stream`, with `stream_options.include_usage`.
    pub stream: bool,
    /// `cache_prompt`.
    pub cache_prompt: bool,
    /// `ignore_eos`: every answer as long as its limit.
    pub ignore_eos: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: 42,
            repeat_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            stream: true,
            cache_prompt: true,
            ignore_eos: false,
        }
    }
}

impl Sampling {
    /// Adds all fields to a body; `ignore_eos` may be asked for by the source.
    pub(super) fn spell_out(
        &self,
        body: &mut Map<String, Value>,
        max_tokens: u64,
        ignore_eos: bool,
    ) {
        let mut add = |name: &str, value: Value| {
            body.insert(name.to_owned(), value);
        };
        add("stream", json!(self.stream));
        if self.stream {
            add("stream_options", json!({ "include_usage": true }));
        }
        add("max_tokens", json!(max_tokens));
        add("temperature", json!(self.temperature));
        add("top_k", json!(self.top_k));
        add("top_p", json!(self.top_p));
        add("min_p", json!(self.min_p));
        add("seed", json!(self.seed));
        add("repeat_penalty", json!(self.repeat_penalty));
        add("repeat_last_n", json!(64));
        add("presence_penalty", json!(self.presence_penalty));
        add("frequency_penalty", json!(self.frequency_penalty));
        add("ignore_eos", json!(self.ignore_eos || ignore_eos));
        add("cache_prompt", json!(self.cache_prompt));
        // Samplers that only some servers have, switched off.
        add("typical_p", json!(1.0));
        add("top_n_sigma", json!(-1.0));
        add("xtc_probability", json!(0.0));
        add("dynatemp_range", json!(0.0));
        add("dry_multiplier", json!(0.0));
        add("mirostat", json!(0));
        // llama-server's running count shows how many tokens its first event stands for.
        add("timings_per_token", json!(self.stream));
        add("return_tokens", json!(true));
    }
}
