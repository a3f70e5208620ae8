//! Sending a saved body byte for byte and reading what comes back.

mod answer;
mod client;
mod cost;
mod crowd;
mod hash;
mod http;
mod interpret;
mod prompt;
mod raw;
mod record;
mod sse;
mod switch;
mod timed;

pub use client::{Request, send};
pub use cost::ClientCost;
pub use crowd::{MOST_AT_ONCE, send_with_workers};
pub use hash::{text_hash, token_hash};
pub use interpret::RequestHeader;
pub use prompt::{Exchange, PromptRecord};
pub use raw::{Arrival, RawResponse};
pub use record::{EngineTimings, RequestRecord, TokenSource};
pub use sse::{MAX_EVENT_BYTES, SseError, SseEvent, SseParser, parse_sse};
pub use switch::SwitchRecord;
pub use timed::{Timed, send_on_schedule};
