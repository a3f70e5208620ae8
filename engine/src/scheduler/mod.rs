//! Requests in, tokens out: one thread owns the model.

mod engine;
mod request;

pub use engine::{Engine, EngineOptions};
pub use request::{
    EngineError, EngineStats, Finish, GenEvent, GenRequest, GenStream, GenSummary, TokenEvent,
};
