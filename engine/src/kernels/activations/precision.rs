//! How finely activations are quantised.

/// How activations enter a dot product with quantised weights. (Float weights always meet f32.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// One int8 digit in blocks of 32.
    Int8,
    /// Two int8 digits, the second for what the first leaves, 256 times finer.
    Int16,
    /// f32 against dequantised weights: slow, the oracle (`--reference`).
    Reference,
}

impl Precision {
    /// int8 digits of an activation.
    pub(super) fn digits(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Int16 => 2,
            Self::Reference => 0,
        }
    }
}
