//! Keys and values of the positions seen so far.

mod cache;
mod chunk;
mod kv_type;
mod layer;

pub use cache::{KvCache, KvShape, LayerView, NotHeld};
pub use kv_type::KvType;
