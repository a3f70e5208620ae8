//! How a session ended.

use serde::{Deserialize, Serialize};

use crate::server::StopFacts;

/// `end.json` of a session: written last, when the server is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    /// `major.minor`.
    pub schema: String,
    /// When the guard let it start; monotonic.
    pub started_ns: u64,
    /// When the server was gone; monotonic.
    pub ended_ns: u64,
    /// How the server went away.
    pub stop: StopFacts,
    /// Why the session failed; absent when it did not.
    pub error: Option<String>,
}
