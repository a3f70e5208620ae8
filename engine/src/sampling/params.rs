//! What a request may say about sampling.

/// Sampling parameters. `temperature <= 0` is greedy (ties go to the lowest id).
/// Order: penalties and bias, temperature, top-k, top-p, min-p, draw.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// 0 is greedy.
    pub temperature: f32,
    /// 0 is off.
    pub top_k: u32,
    /// 1.0 is off.
    pub top_p: f32,
    /// 0.0 is off.
    pub min_p: f32,
    /// `None` draws a fresh seed, which the response reports.
    pub seed: Option<u64>,
    /// Added to a token's logit.
    pub logit_bias: Vec<(u32, f32)>,
    /// OpenAI's presence penalty, over generated tokens.
    pub presence_penalty: f32,
    /// OpenAI's frequency penalty, over generated tokens.
    pub frequency_penalty: f32,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: None,
            logit_bias: Vec::new(),
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
        }
    }
}
