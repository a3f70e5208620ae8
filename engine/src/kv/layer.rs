//! One layer's chunks. A layer that looks at a window keeps the chunks that the next positions
//! look at, and those that a sequence cut back to one of a few places would.

use half::f16;

use super::chunk::{BeyondRange, Chunk};
use super::{KvShape, KvType};
use crate::kernels::KEY_BLOCK;

/// Places to which a windowed layer can be cut back, besides the last window's positions.
const MOST_PLACES: usize = 8;

/// Chunks by the position of their first key over [`KEY_BLOCK`].
#[derive(Clone, Debug)]
pub(super) struct Layer {
    window: Option<usize>,
    chunks: Vec<Option<Chunk>>,
    /// The first chunk that positions from the end on look at, when chunks were last let go.
    tail: usize,
}

impl Layer {
    pub fn new(window: Option<usize>) -> Self {
        Self {
            window,
            chunks: Vec::new(),
            tail: 0,
        }
    }

    /// Chunks held.
    pub fn held(&self) -> usize {
        self.chunks.iter().flatten().count()
    }

    /// The chunk of a position.
    pub fn chunk(&self, index: usize) -> Option<&Chunk> {
        self.chunks.get(index)?.as_ref()
    }

    /// Writes `[n, kv_heads, head_dim]` keys and values at the positions from `start` on.
    pub fn write(
        &mut self,
        shape: KvShape,
        ty: KvType,
        start: usize,
        keys: &[f32],
        values: &[f32],
    ) -> Result<(), (usize, BeyondRange)> {
        let width = shape.kv_heads * shape.head_dim;
        let mut rounded = vec![f16::ZERO; shape.head_dim];
        let tokens = keys.chunks_exact(width).zip(values.chunks_exact(width));
        for (t, token) in tokens.enumerate() {
            let (index, slot) = ((start + t) / KEY_BLOCK, (start + t) % KEY_BLOCK);
            if index >= self.chunks.len() {
                self.chunks.resize_with(index + 1, || None);
            }
            self.chunks[index]
                .get_or_insert_with(|| Chunk::new(shape, ty))
                .write(shape, slot, token, &mut rounded)
                .map_err(|error| (t, error))?;
        }
        Ok(())
    }

    /// The longest prefix of at most `len` positions that the next position can follow: all that
    /// it looks at is held.
    pub fn resumable(&self, len: usize) -> usize {
        let Some(window) = self.window else {
            return len;
        };
        let mut len = len;
        loop {
            let first = (len + 1).saturating_sub(window) / KEY_BLOCK;
            let mut chunks = first..len.div_ceil(KEY_BLOCK);
            match chunks.rfind(|&c| self.chunk(c).is_none()) {
                None => return len,
                Some(missing) => len = missing * KEY_BLOCK,
            }
        }
    }

    /// Forgets all from position `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.chunks.truncate(len.div_ceil(KEY_BLOCK));
        self.tail = 0;
    }

    /// Lets go of what neither position `len` and those behind it nor a later cut need.
    pub fn trim(&mut self, len: usize, mark: Option<usize>) {
        let Some(window) = self.window else {
            return;
        };
        let tail = (len + 1).saturating_sub(window) / KEY_BLOCK;
        if tail == self.tail {
            return;
        }
        self.tail = tail;
        let interval = interval(len, window);
        // A mark serves cuts up to a chunk before it as well.
        let serves = |c: usize, mark: usize| {
            let least = (mark + 1).saturating_sub(window + KEY_BLOCK);
            c * KEY_BLOCK < mark && (c + 1) * KEY_BLOCK > least
        };
        for (c, chunk) in self.chunks.iter_mut().enumerate().take(tail) {
            // The first regular place at or behind the chunk; those before it do not look at it.
            let regular = (c * KEY_BLOCK + 1).next_multiple_of(interval);
            let looks = regular <= len && (c + 1) * KEY_BLOCK + window > regular + 1;
            if !looks && !mark.is_some_and(|mark| serves(c, mark)) {
                *chunk = None;
            }
        }
    }

    /// A copy of the chunks of the first `len` positions.
    pub fn prefix(&self, len: usize) -> Self {
        Self {
            window: self.window,
            chunks: self.chunks[..len.div_ceil(KEY_BLOCK).min(self.chunks.len())].to_vec(),
            tail: 0,
        }
    }
}

/// Positions between the places of a sequence of `len` positions: a window, which keeps everything,
/// doubled until there are at most [`MOST_PLACES`]. Places of a longer interval are places of a
/// shorter.
fn interval(len: usize, window: usize) -> usize {
    let mut interval = window.next_multiple_of(KEY_BLOCK);
    while len / interval > MOST_PLACES {
        interval *= 2;
    }
    interval
}
