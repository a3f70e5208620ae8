//! What came off the socket, and when.

use serde::{Deserialize, Serialize};

/// A read that brought body bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// Monotonic nanoseconds, taken when the bytes left the socket's read.
    pub ns: u64,
    /// Body bytes received up to and including this read.
    pub end: u64,
}

/// A request as it went and a response as it came. Everything else is computed from this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawResponse {
    /// From just before the request is written.
    pub sent_ns: u64,
    /// When the last byte of the response came, or the connection ended.
    pub done_ns: u64,
    /// HTTP status; absent when none came.
    pub status: Option<u16>,
    /// `content-type` of the response.
    pub content_type: Option<String>,
    /// When body bytes came.
    pub arrivals: Vec<Arrival>,
    /// CPU time of the client's thread, user and system, from before the request was written to the
    /// end: what sending, reading, stamping and storing cost. Absent before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_ns: Option<u64>,
    /// Why the exchange ended early, in the client's words; absent when it ended well.
    pub error: Option<String>,
    /// The body; kept in its own file in an archive.
    #[serde(skip)]
    pub body: Vec<u8>,
}

impl RawResponse {
    /// Whether it is no whole answer with status 200.
    pub(super) fn failed(&self) -> bool {
        self.error.is_some() || self.status != Some(200)
    }
}
