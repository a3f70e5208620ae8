//! How finely activations are quantised, as a user chooses it.

use clap::ValueEnum;

use crate::kernels::Precision;
use crate::ops::Precisions;

/// The format of the activations that meet quantised weights. A digit is int8 with a scale a block
/// of 32; the same choice gives the same bits everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ActivationFormat {
    /// One digit everywhere: the fastest prompts, at the precision of other engines
    Int8,
    /// Two digits for attention and dense feed-forward parts, one for experts and the output
    /// matrix, where most of the work is
    Mixed,
    /// Two digits everywhere: logits as with f32 to within a thousandth
    #[default]
    Int16,
    /// No quantisation: slow, the oracle
    F32,
}

impl ActivationFormat {
    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Mixed => "mixed",
            Self::Int16 => "int16",
            Self::F32 => "f32",
        }
    }

    pub(super) fn precisions(self) -> Precisions {
        match self {
            Self::Int8 => Precisions::all(Precision::Int8),
            Self::Mixed => Precisions {
                dense: Precision::Int16,
                ..Precisions::all(Precision::Int8)
            },
            Self::Int16 => Precisions::all(Precision::Int16),
            Self::F32 => Precisions::all(Precision::Reference),
        }
    }
}
