//! Sending a saved body byte for byte and reading what comes back.

mod raw;
mod record;

pub use raw::{Arrival, RawResponse};
pub use record::{EngineTimings, RequestRecord, TokenSource};
