//! Where two walks part.

use std::fmt;

use serde::Serialize;

/// A step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// The logits at this position of the prompt, counted from 0.
    PromptPosition(usize),
    /// The logits after this decode step, counted from 1.
    DecodeStep(usize),
}

impl At {
    /// Of step `index` of a walk over a prompt of `prompt` tokens.
    pub fn new(index: usize, prompt: usize) -> Self {
        if index < prompt {
            Self::PromptPosition(index)
        } else {
            Self::DecodeStep(index - prompt + 1)
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PromptPosition(position) => write!(f, "prompt position {position}"),
            Self::DecodeStep(step) => write!(f, "decode step {step}"),
        }
    }
}

/// The first step whose logits differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The step.
    #[serde(flatten)]
    pub at: At,
    /// Logits that differ there; `None` when walking both ways again gave equal ones, so that what
    /// happened depends on more than the way.
    pub differing: Option<usize>,
    /// Logits of a step.
    pub vocab: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, vocab) = (self.at, self.vocab);
        match self.differing {
            Some(n) => write!(f, "differs from {at} on: {n} of {vocab} logits there"),
            None => write!(f, "differed from {at} on, but not when walked again"),
        }
    }
}

/// How many of two steps' logits differ in their bits.
pub(super) fn differing(a: &[f32], b: &[f32]) -> usize {
    let pairs = a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits());
    pairs.count() + a.len().abs_diff(b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_named_and_bits_are_counted() {
        assert_eq!(At::new(4, 5).to_string(), "prompt position 4");
        assert_eq!(At::new(5, 5).to_string(), "decode step 1");
        let next = f32::from_bits(2f32.to_bits() ^ 1);
        assert_eq!(differing(&[1.0, 2.0, 0.0], &[1.0, next, -0.0]), 2);
        let mut found = Difference {
            at: At::new(5, 5),
            differing: Some(2),
            vocab: 3,
        };
        let text = "differs from decode step 1 on: 2 of 3 logits there";
        assert_eq!(found.to_string(), text);
        let json = r#"{"decode_step":1,"differing":2,"vocab":3}"#;
        assert_eq!(serde_json::to_string(&found).unwrap(), json);
        found.differing = None;
        assert!(found.to_string().ends_with("not when walked again"));
    }
}
