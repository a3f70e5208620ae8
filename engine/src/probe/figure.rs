//! One measured limit.

use serde::{Deserialize, Serialize};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Bytes read from memory.
    DramRead,
    /// int8 multiplications and additions, as the kernels do them.
    Int8Dot,
    /// bf16 multiplications and additions.
    Bf16Dot,
    /// f32 products, rounded, then added.
    F32MulAdd,
    /// f32 multiply-add with one rounding.
    F32Fma,
    /// Bytes read from a file.
    DiskRead,
}

impl Quantity {
    /// As a table says it.
    pub fn title(self) -> &'static str {
        match self {
            Self::DramRead => "DRAM read",
            Self::Int8Dot => "int8 dot",
            Self::Bf16Dot => "bf16 dot",
            Self::F32MulAdd => "fp32 multiply, add",
            Self::F32Fma => "fp32 fused",
            Self::DiskRead => "disk read",
        }
    }

    /// Whether the rate is bytes, else operations, a second.
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::DramRead | Self::DiskRead)
    }

    /// `B/s` or `op/s`.
    pub fn unit(self) -> &'static str {
        if self.is_bytes() { "B/s" } else { "op/s" }
    }
}

/// A rate, measured in several passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    pub quantity: Quantity,
    /// Threads at work; for a disk, requests in flight.
    pub threads: usize,
    /// `B/s` or `op/s`; a multiplication and an addition are two operations.
    pub unit: String,
    /// The fastest pass.
    pub best: f64,
    /// The middle pass.
    pub median: f64,
    /// How many passes.
    pub passes: usize,
    /// Instructions or calls, buffers.
    pub how: String,
    /// `MEASURED`: read off a clock.
    pub label: String,
}

impl Figure {
    /// A figure from the rates of its passes, of which there is at least one.
    pub fn new(quantity: Quantity, threads: usize, rates: &[f64], how: impl Into<String>) -> Self {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        Self {
            quantity,
            threads,
            unit: quantity.unit().to_owned(),
            best: sorted[sorted.len() - 1],
            median,
            passes: sorted.len(),
            how: how.into(),
            label: "MEASURED".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_and_median_of_the_passes() {
        let of = |rates: &[f64]| {
            let figure = Figure::new(Quantity::DramRead, 2, rates, "");
            (figure.best, figure.median, figure.passes)
        };
        assert_eq!(of(&[3.0]), (3.0, 3.0, 1));
        assert_eq!(of(&[1.0, 9.0, 2.0]), (9.0, 2.0, 3));
        assert_eq!(of(&[4.0, 1.0, 9.0, 2.0]), (9.0, 3.0, 4));
    }
}
