//! One request of one session, as facts.

use serde::{Deserialize, Serialize};

/// What the server says of itself; kept apart from the client's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineTimings {
    /// Prompt tokens taken from its cache.
    pub cache_n: Option<u64>,
    /// Prompt tokens computed.
    pub prompt_n: Option<u64>,
    /// Time for those, milliseconds.
    pub prompt_ms: Option<f64>,
    /// Tokens generated.
    pub predicted_n: Option<u64>,
    /// Time for those, milliseconds; from where it runs is the engine's own convention.
    pub predicted_ms: Option<f64>,
}

/// Where token counts and ids come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenSource {
    /// Token ids in the stream itself.
    StreamIds,
    /// The server's own `usage` or `timings`.
    Usage,
    /// Content-bearing events counted: one token an event is assumed, and said.
    Events,
}

/// A line of `requests.jsonl`. Times are monotonic nanoseconds of the client. Everything below
/// `sent_ns` is a pure function of the raw response (see [`RequestRecord::assemble`]), so that an audit can
/// compute it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Position in the session, from 0.
    pub index: u32,
    /// Body's file name in `workload/`.
    pub body: String,
    /// sha256 of the bytes sent.
    pub body_sha256: String,
    /// Warm-ups are recorded, not scored.
    pub scored: bool,
    /// Raw stream's file stem in `streams/`.
    pub stream: String,
    /// The plan's phase; absent where the protocol is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When it was to be sent, monotonic; absent where the plan gives no times. Latencies are then
    /// counted from here, so that a client or server that is late does not hide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ns: Option<u64>,
    /// Before the request was written.
    pub sent_ns: u64,
    /// HTTP status.
    pub status: Option<u16>,
    /// First byte of the response body.
    pub first_byte_ns: Option<u64>,
    /// First event that carries a generated token.
    pub first_token_ns: Option<u64>,
    /// First token of the visible answer.
    pub first_content_ns: Option<u64>,
    /// Last event that carries a generated token.
    pub last_token_ns: Option<u64>,
    /// End of the stream.
    pub done_ns: u64,
    /// Prompt tokens, cached ones included.
    pub prompt_tokens: Option<u64>,
    /// Prompt tokens that the server took from its cache.
    pub cached_tokens: Option<u64>,
    /// Tokens generated.
    pub generated_tokens: Option<u64>,
    /// Where the count comes from.
    pub token_source: Option<TokenSource>,
    /// Tokens in the event of `first_token_ns` (so N - this many were timed).
    pub first_event_tokens: Option<u64>,
    /// How that is known; `events` means that one token was assumed.
    #[serde(default)]
    pub first_event_source: Option<TokenSource>,
    /// Nanoseconds from each event that carries tokens to the next one; left out in older archives
    /// where the protocol is the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_gaps_ns: Vec<u64>,
    /// CPU time that the client's own thread spent on it; absent before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_ns: Option<u64>,
    /// As the server gave it.
    pub finish_reason: Option<String>,
    /// sha256 over prompt token ids, if the server shows them.
    pub prompt_hash: Option<String>,
    /// sha256 over generated token ids, if the server shows them.
    pub generated_hash: Option<String>,
    /// sha256 over the text of reasoning and content (for servers that show no ids).
    pub text_hash: Option<String>,
    /// The server's own timings.
    pub engine: Option<EngineTimings>,
    /// Why this request failed; absent when it did not.
    pub error: Option<String>,
}
