//! A call that switches a server to an arm's settings, as a fact.

use serde::{Deserialize, Serialize};

use super::RawResponse;

/// Longest answer that is kept, in characters.
const KEPT: usize = 4096;

/// A line of `switches.jsonl`: the call before one request of a paired session. Times are monotonic
/// nanoseconds of the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchRecord {
    /// Index of the request that follows it.
    pub index: u32,
    /// The arm whose settings are asked for.
    pub arm: String,
    /// Where it was posted.
    pub path: String,
    /// What was posted.
    pub body: String,
    /// Before it was written.
    pub sent_ns: u64,
    /// When its answer had come.
    pub done_ns: u64,
    /// HTTP status; absent where none came.
    pub status: Option<u16>,
    /// The beginning of the answer.
    pub answer: String,
    /// Why it failed; absent when it did not.
    pub error: Option<String>,
}

impl SwitchRecord {
    /// What a call came to.
    pub fn of(index: u32, arm: &str, path: &str, body: &str, raw: &RawResponse) -> Self {
        let refused = match raw.status {
            Some(status) if (200..300).contains(&status) => None,
            Some(status) => Some(format!("HTTP {status}")),
            None => Some("no HTTP response".to_owned()),
        };
        Self {
            index,
            arm: arm.to_owned(),
            path: path.to_owned(),
            body: body.to_owned(),
            sent_ns: raw.sent_ns,
            done_ns: raw.done_ns,
            status: raw.status,
            answer: String::from_utf8_lossy(&raw.body)
                .chars()
                .take(KEPT)
                .collect(),
            error: raw.error.clone().or(refused),
        }
    }
}
