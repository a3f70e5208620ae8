//! Keys and values of the positions seen so far.

mod cache;

pub use cache::{KV_BLOCK, KvCache, KvShape, LayerView};
