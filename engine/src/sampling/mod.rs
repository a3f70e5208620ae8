//! From logits to a token: greedy, and seeded sampling.

mod params;

pub use params::SamplingParams;
