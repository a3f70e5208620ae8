//! A kernel with a defect: one bit of one of its outputs is wrong. It exists in this crate's own
//! unit tests alone, to show that what compares bits notices.

use std::ops::Range;

use super::isa::Isa;
use super::{Layout, Matrix};
use crate::formats::blocks::GgmlType;

/// Which kernel is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// Of matrices of this type, in this layout.
    Product(GgmlType, Layout),
    /// Attention.
    Attention,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub kernel: Kernel,
    /// Only in calls for at least so many tokens.
    pub least_tokens: usize,
    /// Only in calls for at most so many tokens.
    pub most_tokens: usize,
    /// Row of the matrix, or column of attention's output.
    pub row: usize,
    /// Which token of the call, from its end.
    pub from_end: usize,
    /// The bit that is flipped; 0 is the lowest of the mantissa.
    pub bit: u32,
}

impl Fault {
    fn flip(self, out: &mut [f32], width: usize, column: usize) {
        let tokens = out.len() / width;
        if (self.least_tokens..=self.most_tokens).contains(&tokens) && self.from_end < tokens {
            let value = &mut out[(tokens - 1 - self.from_end) * width + column];
            *value = f32::from_bits(value.to_bits() ^ 1 << self.bit);
        }
    }
}

impl Isa {
    /// The same level with a defect.
    pub(crate) fn with_fault(self, fault: Fault) -> Self {
        Self(self.0, Some(fault))
    }

    /// Breaks a product of `rows` of `w`, `[tokens, rows]`, if that kernel is the broken one.
    pub(super) fn break_product(self, w: &Matrix<'_>, rows: &Range<usize>, out: &mut [f32]) {
        if let Some(fault) = self.1
            && fault.kernel == Kernel::Product(w.ty, w.layout)
            && rows.contains(&fault.row)
        {
            fault.flip(out, rows.len(), fault.row - rows.start);
        }
    }

    /// Breaks attention's output, `[tokens, width]`, if that is the broken kernel.
    pub(crate) fn break_attention(self, out: &mut [f32], width: usize) {
        if let Some(fault) = self.1
            && fault.kernel == Kernel::Attention
        {
            fault.flip(out, width, fault.row);
        }
    }
}
