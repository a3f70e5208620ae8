//! Reading back what a server really did: its own routes, and its process. Raw, as it came;
//! `derive` makes settings of it.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::ServerKind;
use crate::host::{ProcessFacts, machine, now_ns};
use crate::replay::{RawResponse, Request, send};

/// Longest that a route may take to answer: they say what is known already.
const ROUTE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is kept.
const LONGEST_ANSWER: usize = 1 << 20;

/// `readback.json` of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Readback {
    /// `major.minor`.
    pub schema: String,
    /// One moment by two clocks, so that times of this session can be told to people.
    pub clock: ClockPair,
    /// What the server's routes said once it was ready, before the first request.
    pub routes: Vec<RouteAnswer>,
    /// Its process once it was ready.
    pub ready: ProcessFacts,
    /// Its process after the last answer, before it was stopped.
    pub end: ProcessFacts,
    /// What the server had printed by then is read from here, at most 1 MiB; not in the file.
    #[serde(skip)]
    pub log: String,
}

/// One moment by the monotonic clock and by the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPair {
    /// Monotonic.
    pub monotonic_ns: u64,
    /// Milliseconds since 1970, UTC.
    pub unix_ms: u64,
}

impl ClockPair {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            monotonic_ns: now_ns(),
            unix_ms: since.unwrap_or_default().as_millis() as u64,
        }
    }

    /// `HH:MM:SS` in UTC of a monotonic time.
    pub fn time_of_day(&self, ns: u64) -> String {
        let ms = self.unix_ms as i128 + (ns as i128 - self.monotonic_ns as i128) / 1_000_000;
        let s = ms.max(0) / 1000 % 86_400;
        format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    }
}

/// What one route answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteAnswer {
    /// The route.
    pub path: String,
    /// HTTP status; absent where no answer came.
    pub status: Option<u16>,
    /// The answer as it came, if it is text; absent where it is not, or is longer than 1 MiB.
    pub body: Option<String>,
    /// Why there is no whole answer.
    pub error: Option<String>,
}

impl RouteAnswer {
    fn of(path: &str, raw: RawResponse) -> Self {
        let body = String::from_utf8(raw.body).ok();
        Self {
            path: path.to_owned(),
            status: raw.status,
            body: body.filter(|b| b.len() <= LONGEST_ANSWER),
            error: raw.error,
        }
    }
}

impl ServerKind {
    /// The routes that say how a server of this kind is set; none where there is no common one.
    fn routes(self) -> &'static [&'static str] {
        match self {
            Self::LlamaCpp | Self::PalindromeEngine | Self::Mock => {
                &["/props", "/slots", "/v1/models"]
            }
            Self::Openai => &["/v1/models"],
        }
    }
}

impl Readback {
    /// Asks a server that is ready.
    pub fn ask(kind: ServerKind, port: u16, pid: u32, cancelled: &dyn Fn() -> bool) -> Self {
        let ask = |path: &str| {
            let request = Request {
                port,
                path,
                body: None,
                timeout: ROUTE_TIMEOUT,
            };
            RouteAnswer::of(path, send(&request, cancelled))
        };
        let ready = machine().process(pid);
        Self {
            schema: "1.0".to_owned(),
            clock: ClockPair::now(),
            routes: kind.routes().iter().map(|path| ask(path)).collect(),
            end: ready.clone(),
            ready,
            log: String::new(),
        }
    }

    /// Looks at the process again, before it is stopped.
    pub fn at_end(&mut self, pid: u32) {
        self.end = machine().process(pid);
    }

    /// The JSON that a route answered with status 200.
    pub fn json(&self, path: &str) -> Option<serde_json::Value> {
        let answer = self.routes.iter().find(|a| a.path == path)?;
        let body = answer
            .body
            .as_ref()
            .filter(|_| answer.status == Some(200))?;
        serde_json::from_str(body).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_monotonic_time_is_told_by_the_clock_on_the_wall() {
        let pair = ClockPair {
            monotonic_ns: 5_000_000_000,
            unix_ms: 14 * 3_600_000 + 3 * 60_000,
        };
        assert_eq!(pair.time_of_day(5_000_000_000), "14:03:00");
        assert_eq!(pair.time_of_day(67_900_000_000), "14:04:02");
        assert_eq!(pair.time_of_day(0), "14:02:55");
    }
}
