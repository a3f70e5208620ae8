//! Findings in one line.

use std::collections::BTreeSet;

use super::sources::Noise;

/// How many are spelled out.
const SPELLED: usize = 3;

impl Noise {
    /// With its session and time: `03-B, 14:03:05 UTC: process rustc ...`.
    pub fn line(&self) -> String {
        match &self.at {
            Some(at) => format!("{}, {at} UTC: {}", self.session, self.words),
            None => format!("{}: {}", self.session, self.words),
        }
    }
}

/// What touched scored sessions, for the first lines of a report; absent where nothing did.
pub(in crate::derive) fn warning(all: &[Noise]) -> Option<String> {
    let scored: Vec<&Noise> = all.iter().filter(|n| n.scored).collect();
    let sessions: BTreeSet<&str> = scored.iter().map(|n| n.session.as_str()).collect();
    let spelled: Vec<String> = scored.iter().take(SPELLED).map(|n| n.line()).collect();
    let more = scored.len().saturating_sub(SPELLED);
    let more = if more > 0 {
        format!("; and {more} more, listed with the sessions")
    } else {
        String::new()
    };
    (!scored.is_empty()).then(|| {
        format!(
            "Noise touched {} scored session(s). {}{more}.",
            sessions.len(),
            spelled.join("; ")
        )
    })
}
