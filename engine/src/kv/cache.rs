//! The K/V cache of one sequence: f32, full length on every layer, grown in chunks.

/// Positions a chunk of storage holds.
const CHUNK: usize = 256;

/// Positions of an attention block; blocks are aligned to absolute positions and never cross a
/// chunk's end.
pub const KV_BLOCK: usize = 64;

const _: () = assert!(CHUNK.is_multiple_of(KV_BLOCK));

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

/// Keys (after RoPE) and values of one sequence.
#[derive(Clone, Debug)]
pub struct KvCache {
    shape: KvShape,
    /// Per layer, chunks of `[kv_heads, CHUNK, head_dim]`.
    layers: Vec<Layer>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct Layer {
    keys: Vec<Box<[f32]>>,
    values: Vec<Box<[f32]>>,
}

impl KvCache {
    /// An empty cache; storage comes as positions do.
    pub fn new(shape: KvShape) -> Self {
        Self {
            shape,
            layers: vec![Layer::default(); shape.layers],
            len: 0,
        }
    }

    /// Positions held.
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
        let chunks: usize = self
            .layers
            .iter()
            .map(|l| l.keys.len() + l.values.len())
            .sum();
        chunks * self.chunk_len() * size_of::<f32>()
    }

    /// Forgets all positions from `len` on, and gives their storage back.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        let chunks = self.len.div_ceil(CHUNK);
        for layer in &mut self.layers {
            layer.keys.truncate(chunks);
            layer.values.truncate(chunks);
        }
    }

    /// A copy of the first `len` positions.
    #[must_use]
    pub fn prefix(&self, len: usize) -> Self {
        let chunks = len.min(self.len).div_ceil(CHUNK);
        let copy = |layer: &Layer| Layer {
            keys: layer.keys[..chunks].to_vec(),
            values: layer.values[..chunks].to_vec(),
        };
        Self {
            shape: self.shape,
            layers: self.layers.iter().map(copy).collect(),
            len: len.min(self.len),
        }
    }

    /// Writes keys and values, `[n, kv_heads, head_dim]` each, of layer `layer` behind the
    /// positions held. They count only after [`KvCache::advance`], once every layer has written.
    pub fn write(&mut self, layer: usize, keys: &[f32], values: &[f32]) {
        let (heads, dim) = (self.shape.kv_heads, self.shape.head_dim);
        let chunk_len = self.chunk_len();
        let (start, layer) = (self.len, &mut self.layers[layer]);
        let stores = [(&mut layer.keys, keys), (&mut layer.values, values)];
        for (store, new) in stores {
            for (t, token) in new.chunks_exact(heads * dim).enumerate() {
                let position = start + t;
                if position / CHUNK == store.len() {
                    store.push(vec![0.0; chunk_len].into_boxed_slice());
                }
                let chunk = &mut store[position / CHUNK];
                for (h, head) in token.chunks_exact(dim).enumerate() {
                    let at = (h * CHUNK + position % CHUNK) * dim;
                    chunk[at..at + dim].copy_from_slice(head);
                }
            }
        }
    }

    /// Counts `n` more positions as held.
    pub fn advance(&mut self, n: usize) {
        self.len += n;
    }

    /// A layer's keys and values, those written since the last `advance` included.
    pub fn layer(&self, layer: usize) -> LayerView<'_> {
        LayerView {
            layer: &self.layers[layer],
            head_dim: self.shape.head_dim,
        }
    }

    fn chunk_len(&self) -> usize {
        self.shape.kv_heads * CHUNK * self.shape.head_dim
    }
}

/// Read access to one layer.
#[derive(Clone, Copy)]
pub struct LayerView<'a> {
    layer: &'a Layer,
    head_dim: usize,
}

impl<'a> LayerView<'a> {
    /// Keys of positions `from..to`, which lie within one aligned [`KV_BLOCK`], `[to - from, head_dim]`.
    pub fn keys(&self, kv_head: usize, from: usize, to: usize) -> &'a [f32] {
        self.part(&self.layer.keys, kv_head, from, to)
    }

    /// Values, as [`LayerView::keys`].
    pub fn values(&self, kv_head: usize, from: usize, to: usize) -> &'a [f32] {
        self.part(&self.layer.values, kv_head, from, to)
    }

    fn part(&self, store: &'a [Box<[f32]>], head: usize, from: usize, to: usize) -> &'a [f32] {
        debug_assert!(from < to && from / KV_BLOCK == (to - 1) / KV_BLOCK);
        let at = (head * CHUNK + from % CHUNK) * self.head_dim;
        &store[from / CHUNK][at..at + (to - from) * self.head_dim]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: KvShape = KvShape {
        layers: 2,
        kv_heads: 2,
        head_dim: 3,
        ctx: 1000,
    };

    fn value(layer: usize, position: usize, head: usize, d: usize) -> f32 {
        (layer * 10_000 + position * 10 + head * 5 + d) as f32
    }

    fn fill(cache: &mut KvCache, n: usize) {
        let start = cache.len();
        for layer in 0..2 {
            let mut keys = Vec::new();
            for p in start..start + n {
                for h in 0..2 {
                    keys.extend((0..3).map(|d| value(layer, p, h, d)));
                }
            }
            let values: Vec<f32> = keys.iter().map(|k| -k).collect();
            cache.write(layer, &keys, &values);
        }
        cache.advance(n);
    }

    fn check(cache: &KvCache) {
        for layer in 0..2 {
            for p in 0..cache.len() {
                for h in 0..2 {
                    let expected: Vec<f32> = (0..3).map(|d| value(layer, p, h, d)).collect();
                    let view = cache.layer(layer);
                    assert_eq!(view.keys(h, p, p + 1), expected);
                    assert!(
                        view.values(h, p, p + 1)
                            .iter()
                            .zip(&expected)
                            .all(|(v, k)| *v == -k)
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_written_is_read_across_chunks() {
        let mut cache = KvCache::new(SHAPE);
        assert_eq!((cache.bytes(), cache.is_empty()), (0, true));
        for n in [1, 254, 1, 1, 300] {
            fill(&mut cache, n);
        }
        assert_eq!(cache.len(), 557);
        assert_eq!(cache.bytes(), 2 * 2 * 3 * 256 * 2 * 3 * 4);
        check(&cache);
    }

    #[test]
    fn truncating_and_copying_keep_the_prefix() {
        let mut cache = KvCache::new(SHAPE);
        fill(&mut cache, 600);
        let copy = cache.prefix(256);
        assert_eq!((copy.len(), copy.bytes()), (256, cache.bytes() / 3));
        check(&copy);
        cache.truncate(300);
        assert_eq!(cache.len(), 300);
        fill(&mut cache, 30);
        check(&cache);
    }
}
