//! File and block formats: GGUF containers and the quantised blocks inside them.

pub mod blocks;
pub mod gguf;
