//! The K/V cache of one sequence. Storage comes in chunks as positions do; layers that look at a
//! window keep little more than that window.

use super::KvType;
use super::chunk::Chunk;
use super::layer::Layer;
use crate::kernels::{KEY_BLOCK, LANES, Panels};

/// What a cache holds for each position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Layers.
    pub layers: usize,
    /// Key heads, and as many value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Most positions.
    pub ctx: usize,
}

/// A key or value that the cache's format cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key or value of row {row} is beyond f16's range")]
pub struct NotHeld {
    /// The row of those written.
    pub row: usize,
}

/// Keys (after RoPE) and values of one sequence.
#[derive(Clone, Debug)]
pub struct KvCache {
    shape: KvShape,
    ty: KvType,
    layers: Vec<Layer>,
    len: usize,
    /// A length that the sequence may well be cut back to.
    mark: Option<usize>,
}

impl KvCache {
    /// An empty cache; every layer looks at all positions.
    pub fn new(shape: KvShape, ty: KvType) -> Self {
        Self::windowed(shape, ty, &vec![None; shape.layers])
    }

    /// An empty cache of layers that look at the last so many positions, or at all.
    ///
    /// # Panics
    /// When there is not one window a layer.
    pub fn windowed(shape: KvShape, ty: KvType, windows: &[Option<usize>]) -> Self {
        assert_eq!(windows.len(), shape.layers, "a window or none a layer");
        Self {
            shape,
            ty,
            layers: windows.iter().copied().map(Layer::new).collect(),
            len: 0,
            mark: None,
        }
    }

    /// Positions held. Of all but the last ones a windowed layer may have let go.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Most positions.
    pub fn ctx(&self) -> usize {
        self.shape.ctx
    }

    /// Bytes of storage.
    pub fn bytes(&self) -> usize {
        let chunks: usize = self.layers.iter().map(Layer::held).sum();
        chunks * Chunk::bytes(self.shape, self.ty)
    }

    /// The longest prefix of at most `len` positions that a sequence can go on from: every
    /// windowed layer still holds what the position behind it looks at.
    pub fn resumable(&self, len: usize) -> usize {
        let mut len = len.min(self.len);
        loop {
            let next = self.layers.iter().fold(len, |len, l| l.resumable(len));
            if next == len {
                return len;
            }
            len = next;
        }
    }

    /// Forgets all positions from `len` on, gives their storage back and returns `len`; or the
    /// length of the longest prefix that can be gone on from, where that is less
    /// ([`KvCache::resumable`]). What was written since the last `advance` can always be
    /// forgotten, and so can all that one pass wrote.
    pub fn truncate(&mut self, len: usize) -> usize {
        self.len = self.resumable(len);
        for layer in &mut self.layers {
            layer.truncate(self.len);
        }
        self.mark = self.mark.filter(|&mark| mark <= self.len);
        self.len
    }

    /// A copy of the first `len` positions, or of as many as [`KvCache::truncate`] would leave.
    #[must_use]
    pub fn prefix(&self, len: usize) -> Self {
        let len = self.resumable(len);
        let mut copy = Self {
            layers: self.layers.iter().map(|l| l.prefix(len)).collect(),
            len,
            mark: self.mark.filter(|&mark| mark <= len),
            ..*self
        };
        copy.trim();
        copy
    }

    /// Says that the sequence may well be cut back to its present length, or a little less:
    /// windowed layers keep what that takes, until the next mark.
    pub fn mark(&mut self) {
        self.mark = Some(self.len);
    }

    /// Writes keys and values, `[n, kv_heads, head_dim]` each, of layer `layer` behind the
    /// positions held. They count only after [`KvCache::advance`], once every layer has written.
    pub fn write(&mut self, layer: usize, keys: &[f32], values: &[f32]) -> Result<(), NotHeld> {
        let layer = &mut self.layers[layer];
        layer.trim(self.len, self.mark);
        layer
            .write(self.shape, self.ty, self.len, keys, values)
            .map_err(|(row, _)| NotHeld { row })
    }

    /// Counts `n` more positions as held.
    pub fn advance(&mut self, n: usize) {
        self.len += n;
    }

    /// A layer's keys and values, those written since the last `advance` included.
    pub fn layer(&self, layer: usize) -> LayerView<'_> {
        LayerView {
            layer: &self.layers[layer],
            shape: self.shape,
        }
    }

    fn trim(&mut self) {
        for layer in &mut self.layers {
            layer.trim(self.len, self.mark);
        }
    }
}

/// Read access to one layer.
#[derive(Clone, Copy)]
pub struct LayerView<'a> {
    layer: &'a Layer,
    shape: KvShape,
}

impl<'a> LayerView<'a> {
    /// Keys of a head at the positions from `block * 64` on, in panels of sixteen positions,
    /// `[4, head_dim, 16]`. Those of positions not written are any number.
    pub fn keys(&self, kv_head: usize, block: usize) -> Panels<'a> {
        self.chunk(block).keys(self.shape, kv_head)
    }

    /// Values, as [`LayerView::keys`], in panels of sixteen dimensions, `[panels, 64, 16]`.
    pub fn values(&self, kv_head: usize, block: usize) -> Panels<'a> {
        self.chunk(block).values(self.shape, kv_head)
    }

    /// The key and the value of one position.
    pub fn position(&self, kv_head: usize, position: usize) -> (Vec<f32>, Vec<f32>) {
        let (block, slot) = (position / KEY_BLOCK, position % KEY_BLOCK);
        let read = |panels: Panels<'_>, at: usize| match panels {
            Panels::F32(x) => x[at],
            Panels::F16(x) => x[at].to_f32(),
        };
        let (keys, values) = (self.keys(kv_head, block), self.values(kv_head, block));
        let dim = self.shape.head_dim;
        let key = |d| (slot / LANES * dim + d) * LANES + slot % LANES;
        let value = |d| (d / LANES * KEY_BLOCK + slot) * LANES + d % LANES;
        (
            (0..dim).map(|d| read(keys, key(d))).collect(),
            (0..dim).map(|d| read(values, value(d))).collect(),
        )
    }

    fn chunk(&self, block: usize) -> &'a Chunk {
        self.layer
            .chunk(block)
            .unwrap_or_else(|| panic!("keys from {} on are not held", block * KEY_BLOCK))
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
