//! `palindrome-engine`: a hybrid mixture-of-experts server whose answers depend on the model
//! file and the tokens alone.
//!
//! Layers only look down: `cli` and `server` use `chat`, `tokenizer` and `scheduler`; the
//! scheduler owns a `model`; a model is straight-line code over `ops` and `kv`; ops call
//! `kernels` on the threads of a `team`; `formats` reads files.

pub mod bench;
pub mod chat;
pub mod cli;
pub mod formats;
mod hex;
pub mod kernels;
pub mod kv;
mod memory;
pub mod model;
pub mod ops;
pub mod probe;
pub mod sampling;
pub mod scheduler;
pub mod server;
pub mod synth;
pub mod team;
pub mod tokenizer;
pub mod verify;
