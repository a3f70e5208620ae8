//! Softmax over keys that come block by block (Milakov and Gimelshein, "Online normalizer
//! calculation for softmax", 2018). Blocks are aligned to absolute positions, so a row takes the
//! same steps however its keys were computed.

use std::ops::Range;

use super::elementary::exp;

/// Keys of a block.
pub const KEY_BLOCK: usize = 64;

/// A row on its way through the blocks of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// The keys of the block under way that the row sees.
    pub seen: Range<usize>,
    /// The largest score so far.
    pub max: f32,
    /// Sum of e^(score - max).
    pub total: f32,
    /// What the last block made of the sums before it: they count this many times.
    pub factor: f32,
}

impl Tally {
    /// Before the first block. A sink's logit joins the maximum and the total and has no value.
    pub fn new(sink: Option<f32>) -> Self {
        Self {
            seen: 0..0,
            max: sink.unwrap_or(f32::NEG_INFINITY),
            total: if sink.is_some() { 1.0 } else { 0.0 },
            factor: 1.0,
        }
    }

    /// Whether the row sees any of the block; the scores of keys that it does not see become
    /// those of weight 0.
    #[inline]
    pub(super) fn begin(&mut self, scores: &mut [f32; KEY_BLOCK]) -> bool {
        if self.seen.is_empty() {
            self.factor = 1.0;
            return false;
        }
        if self.seen != (0..KEY_BLOCK) {
            scores[..self.seen.start].fill(f32::NEG_INFINITY);
            scores[self.seen.end..].fill(f32::NEG_INFINITY);
        }
        true
    }

    /// Takes in the largest score of a block, which sets the factor.
    #[inline]
    pub(super) fn rise(&mut self, block_max: f32) {
        self.factor = 1.0;
        if block_max > self.max {
            self.factor = exp(self.max - block_max);
            self.max = block_max;
        }
    }

    /// Takes in the sum of a block's weights.
    #[inline]
    pub(super) fn count(&mut self, sum: f32) {
        self.total = self.total * self.factor + sum;
    }
}
