//! Several sequences in one forward pass: their tokens are rows of the same matrices, and each
//! attends to its own cache.

use std::ops::Range;

use super::{ForwardError, loaded::Want};
use crate::kv::{KvCache, LayerView};
use crate::ops::Place;

/// One sequence's part of a forward pass: its next tokens, at the positions behind those in its
/// cache.
#[derive(Debug)]
pub struct Segment<'a> {
    /// Keys and values of the tokens before.
    pub cache: &'a mut KvCache,
    /// At least one.
    pub tokens: &'a [u32],
    /// Which of these tokens' logits are wanted.
    pub want: Want,
}

/// The segments of a pass with their rows put together.
pub(super) struct Batch<'a> {
    pub tokens: Vec<u32>,
    /// Where each row stands.
    pub places: Vec<Place>,
    caches: Vec<&'a mut KvCache>,
    /// Rows of segment s: `bounds[s]..bounds[s + 1]`.
    bounds: Vec<usize>,
}

impl<'a> Batch<'a> {
    /// In the given order; borrows the segments' caches for the time of the pass.
    pub fn new<'s: 'a>(segments: impl Iterator<Item = &'a mut Segment<'s>>) -> Self {
        let mut batch = Self {
            tokens: Vec::new(),
            places: Vec::new(),
            caches: Vec::new(),
            bounds: vec![0],
        };
        for (segment, part) in segments.enumerate() {
            let start = part.cache.len();
            let place = |i| Place {
                segment,
                position: start + i,
            };
            batch.places.extend((0..part.tokens.len()).map(place));
            batch.tokens.extend_from_slice(part.tokens);
            batch.bounds.push(batch.tokens.len());
            batch.caches.push(&mut *part.cache);
        }
        batch
    }

    /// The rows of a segment.
    pub fn rows(&self, segment: usize) -> Range<usize> {
        self.bounds[segment]..self.bounds[segment + 1]
    }

    /// Counts what was written as held, or forgets it.
    pub fn finish(self, keep: bool) {
        for (cache, rows) in self.caches.into_iter().zip(self.bounds.windows(2)) {
            if keep {
                cache.advance(rows[1] - rows[0]);
            } else {
                cache.truncate(cache.len());
            }
        }
    }

    /// The position of each row in its sequence.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = usize> {
        self.places.iter().map(|place| place.position)
    }

    /// Writes each segment's rows of `keys` and `values` behind what its cache holds.
    pub fn write(&mut self, layer: usize, keys: &[f32], values: &[f32]) -> Result<(), BadRow> {
        let width = keys.len() / self.tokens.len();
        for (cache, rows) in self.caches.iter_mut().zip(self.bounds.windows(2)) {
            let part = rows[0] * width..rows[1] * width;
            cache
                .write(layer, &keys[part.clone()], &values[part])
                .map_err(|bad| BadRow {
                    fault: Fault::BeyondF16,
                    row: rows[0] + bad.row,
                    layer: Some(layer),
                })?;
        }
        Ok(())
    }

    /// Each segment's keys and values of a layer.
    pub fn layer(&self, layer: usize) -> Vec<LayerView<'_>> {
        self.caches.iter().map(|cache| cache.layer(layer)).collect()
    }
}

/// What is wrong with a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// This value is not finite, or beyond what activations can hold.
    NonFinite(&'static str),
    /// A key or value does not fit the cache's f16.
    BeyondF16,
}

/// A number that a pass cannot use, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct BadRow {
    pub fault: Fault,
    /// Row of the pass.
    pub row: usize,
    /// `None`: the output.
    pub layer: Option<usize>,
}

impl BadRow {
    /// As its request hears of it.
    pub fn at(self, position: usize) -> ForwardError {
        let place = self
            .layer
            .map_or("in the output".to_owned(), |l| format!("in layer {l}"));
        match self.fault {
            Fault::NonFinite(what) => ForwardError::NonFinite {
                what,
                position,
                place,
            },
            Fault::BeyondF16 => ForwardError::BeyondF16 { position, place },
        }
    }
}
