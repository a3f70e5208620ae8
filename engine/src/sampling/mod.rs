//! From logits to a token: greedy, and seeded sampling.

mod logprobs;
mod params;
mod rng;
mod sampler;

pub use logprobs::{LogProbs, log_probs};
pub use params::SamplingParams;
pub use rng::{draw, fresh_seed};
pub use sampler::{Sampler, greedy};
