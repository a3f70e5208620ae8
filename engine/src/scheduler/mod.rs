//! Requests in, tokens out: one thread owns the model and works on several requests at once.

mod engine;
mod faults;
mod hash;
#[cfg(any(debug_assertions, feature = "planted"))]
mod planted;
mod pool;
mod queue;
mod request;
mod running;
mod share;
mod steps;
#[cfg(test)]
mod tests;

pub use engine::{DEFAULT_PARALLEL, Engine};
pub use hash::token_hash;
pub use request::{
    EngineError, EngineStats, Finish, GenEvent, GenRequest, GenStream, GenSummary, SlotWork,
    TokenEvent,
};
