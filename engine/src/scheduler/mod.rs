//! Requests in, tokens out: one thread owns the model.

mod engine;
mod faults;
mod generate;
mod hash;
mod pool;
mod queue;
mod request;

pub use engine::Engine;
pub use hash::token_hash;
pub use request::{
    EngineError, EngineStats, Finish, GenEvent, GenRequest, GenStream, GenSummary, TokenEvent,
};
