//! File and block formats: GGUF containers, the quantised blocks inside them, and the tiles
//! that kernels read fastest.

pub mod blocks;
pub mod gguf;
pub mod packed_scales;
pub mod planes;
pub mod store;
pub mod tiles;
