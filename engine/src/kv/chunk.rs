//! Storage of one block of positions of one layer, as the kernels of attention read it.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::{KvShape, KvType};
use crate::kernels::{KEY_BLOCK, LANES, Panels};

/// A number that the cache's format cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BeyondRange;

/// Keys and values of [`KEY_BLOCK`] positions: for each head, keys in panels of sixteen positions,
/// `[4, head_dim, 16]`, and values in panels of sixteen dimensions, `[head_dim / 16 up, 64, 16]`.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    keys: Numbers,
    values: Numbers,
}

#[derive(Clone, Debug)]
enum Numbers {
    F32(Box<[f32]>),
    F16(Box<[f16]>),
}

impl Numbers {
    fn new(ty: KvType, n: usize) -> Self {
        match ty {
            KvType::F32 => Self::F32(vec![0.0; n].into_boxed_slice()),
            KvType::F16 => Self::F16(vec![f16::ZERO; n].into_boxed_slice()),
        }
    }

    fn panels(&self, at: usize, n: usize) -> Panels<'_> {
        match self {
            Self::F32(x) => Panels::F32(&x[at..at + n]),
            Self::F16(x) => Panels::F16(&x[at..at + n]),
        }
    }

    /// Puts number i of `row` at `place(i)`.
    fn scatter(
        &mut self,
        row: &[f32],
        rounded: &mut [f16],
        place: impl Fn(usize) -> usize,
    ) -> Result<(), BeyondRange> {
        match self {
            Self::F32(x) => {
                for (i, value) in row.iter().enumerate() {
                    x[place(i)] = *value;
                }
                Ok(())
            }
            Self::F16(x) => {
                rounded.convert_from_f32_slice(row);
                for (i, value) in rounded.iter().enumerate() {
                    x[place(i)] = *value;
                }
                if rounded.iter().all(|value| value.is_finite()) {
                    Ok(())
                } else {
                    Err(BeyondRange)
                }
            }
        }
    }
}

/// Numbers of a head's keys in a chunk.
fn key_len(shape: KvShape) -> usize {
    KEY_BLOCK * shape.head_dim
}

/// Numbers of a head's values in a chunk; the last panel's spare lanes stay 0.
fn value_len(shape: KvShape) -> usize {
    KEY_BLOCK * shape.head_dim.next_multiple_of(LANES)
}

impl Chunk {
    pub fn new(shape: KvShape, ty: KvType) -> Self {
        Self {
            keys: Numbers::new(ty, shape.kv_heads * key_len(shape)),
            values: Numbers::new(ty, shape.kv_heads * value_len(shape)),
        }
    }

    /// Bytes of a chunk.
    pub fn bytes(shape: KvShape, ty: KvType) -> usize {
        shape.kv_heads * (key_len(shape) + value_len(shape)) * ty.bytes()
    }

    /// Writes the keys and values, `[kv_heads, head_dim]` each, of the chunk's position `slot`.
    /// `rounded` is room for `head_dim` numbers.
    pub fn write(
        &mut self,
        shape: KvShape,
        slot: usize,
        (keys, values): (&[f32], &[f32]),
        rounded: &mut [f16],
    ) -> Result<(), BeyondRange> {
        let dim = shape.head_dim;
        let (group, lane) = (slot / LANES, slot % LANES);
        for (h, key) in keys.chunks_exact(dim).enumerate() {
            let at = h * key_len(shape) + group * dim * LANES + lane;
            self.keys.scatter(key, rounded, |d| at + d * LANES)?;
        }
        for (h, value) in values.chunks_exact(dim).enumerate() {
            let at = h * value_len(shape) + slot * LANES;
            let place = |d: usize| at + d / LANES * KEY_BLOCK * LANES + d % LANES;
            self.values.scatter(value, rounded, place)?;
        }
        Ok(())
    }

    pub fn keys(&self, shape: KvShape, head: usize) -> Panels<'_> {
        let n = key_len(shape);
        self.keys.panels(head * n, n)
    }

    pub fn values(&self, shape: KvShape, head: usize) -> Panels<'_> {
        let n = value_len(shape);
        self.values.panels(head * n, n)
    }
}
