//! What a run looks like so far: for people who watch it. Made of what the replay records anyway;
//! nothing here is published, compared or kept, and no figure comes from it.

use std::fmt::Write as _;
use std::time::Duration;

use crate::replay::RequestRecord;
use crate::study::{Plan, PlannedSession, Protocol, Role};

/// An arm's scored requests so far.
#[derive(Clone, Debug, Default)]
struct Tally {
    sessions: u32,
    tokens: u64,
    seconds: f64,
    first_tokens: u32,
    first_token_seconds: f64,
}

/// A run so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    protocol: Protocol,
    order: Vec<PlannedSession>,
    arms: Vec<(String, Tally)>,
    now: Option<PlannedSession>,
    left: usize,
    walls: Vec<Duration>,
}

impl Live {
    /// Before the first session of this run; `finished` were done before.
    pub(super) fn new(plan: &Plan, finished: usize) -> Self {
        let arms = plan.arms.iter();
        Self {
            protocol: plan.protocol.clone(),
            order: plan.sessions.clone(),
            arms: arms.map(|arm| (arm.clone(), Tally::default())).collect(),
            now: None,
            left: plan.sessions.len().saturating_sub(finished),
            walls: Vec::new(),
        }
    }

    /// A session starts.
    pub(super) fn session(&mut self, session: &PlannedSession) {
        self.now = Some(session.clone());
    }

    /// A request of a session of `arm` was answered.
    pub(super) fn request(&mut self, arm: &str, record: &RequestRecord) {
        let counts = self.now.as_ref().is_some_and(|s| s.role == Role::Scored);
        if !counts || !record.scored || record.error.is_some() {
            return;
        }
        let arm = self.protocol.arm_of(&record.body).unwrap_or(arm);
        let Some((_, tally)) = self.arms.iter_mut().find(|(name, _)| name == arm) else {
            return;
        };
        if let Some(seconds) = first_token_s(record) {
            tally.first_tokens += 1;
            tally.first_token_seconds += seconds;
        }
        if let Some((tokens, seconds)) = decoded(record) {
            tally.tokens += tokens;
            tally.seconds += seconds;
        }
    }

    /// The session is in the archive, `wall` after it started.
    pub(super) fn committed(&mut self, session: &PlannedSession, wall: Duration) {
        self.left = self.left.saturating_sub(1);
        self.walls.push(wall);
        if session.role == Role::Scored
            && let Some((_, tally)) = self.arms.iter_mut().find(|(n, _)| *n == session.arm)
        {
            tally.sessions += 1;
        }
    }

    /// `quartet 2 of 3: A [B] B A`; the session under way stands in brackets.
    pub(super) fn place(&self) -> String {
        let Some(now) = &self.now else {
            return "nothing has started yet".to_owned();
        };
        let Some(quartet) = now.quartet else {
            return format!("burn-in: [{}], not scored", now.arm);
        };
        let last = self.order.iter().filter_map(|s| s.quartet).max();
        let mut text = format!(
            "quartet {} of {}:",
            quartet + 1,
            last.unwrap_or(quartet) + 1
        );
        for session in self.order.iter().filter(|s| s.quartet == Some(quartet)) {
            let arm = &session.arm;
            // Writing to a String cannot fail.
            let _ = if session.index == now.index {
                write!(text, " [{arm}]")
            } else {
                write!(text, " {arm}")
            };
        }
        text
    }

    /// `A 512 tok/s, first token 0.210 s (3 sessions) · B ...`; a dash where nothing is known yet.
    pub(super) fn rates(&self) -> String {
        let arm = |(name, tally): &(String, Tally)| {
            let rate = (tally.seconds > 0.0).then(|| tally.tokens as f64 / tally.seconds);
            let rate = rate.map_or("-".to_owned(), |rate| format!("{rate:.1} tok/s"));
            let first = (tally.first_tokens > 0)
                .then(|| tally.first_token_seconds / f64::from(tally.first_tokens));
            let first = first.map_or("-".to_owned(), |s| format!("{s:.3} s"));
            format!(
                "{name} {rate}, first token {first} ({} sessions)",
                tally.sessions
            )
        };
        self.arms.iter().map(arm).collect::<Vec<_>>().join(" · ")
    }

    /// How long the sessions that are left take if they take as long as those of this run so far;
    /// `running` is since the one under way began. Absent before the first has ended.
    pub(super) fn time_left(&self, running: Duration) -> Option<Duration> {
        let ended = u32::try_from(self.walls.len()).ok().filter(|n| *n > 0)?;
        let mean = self.walls.iter().sum::<Duration>() / ended;
        let whole = mean * u32::try_from(self.left).ok()?;
        Some(whole.saturating_sub(running.min(mean)))
    }
}

/// From when the request was due, or sent, to its first token.
pub(crate) fn first_token_s(record: &RequestRecord) -> Option<f64> {
    let from = record.due_ns.unwrap_or(record.sent_ns);
    Some(record.first_token_ns?.checked_sub(from)? as f64 / 1e9)
}

/// Tokens after those of the first event, and the seconds that they took.
pub(crate) fn decoded(record: &RequestRecord) -> Option<(u64, f64)> {
    let tokens = record
        .generated_tokens?
        .checked_sub(record.first_event_tokens?)?;
    let ns = record.last_token_ns?.checked_sub(record.first_token_ns?)?;
    (ns > 0).then_some((tokens, ns as f64 / 1e9))
}

/// `about 12 min left`.
pub(super) fn in_words(left: Duration) -> String {
    match left.as_secs() {
        0..=99 => format!("about {} s left", left.as_secs()),
        s @ 100..=5999 => format!("about {} min left", s.div_ceil(60)),
        s => format!("about {} h {} min left", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{RawResponse, RequestHeader};
    use crate::server::ServerKind;
    use crate::study::order;

    #[test]
    fn a_run_is_told_as_it_goes() {
        let names = ["A".to_owned(), "B".to_owned()];
        let sessions = order(&names, &[true, false], true);
        let mut live = Live {
            order: sessions.clone(),
            arms: names
                .iter()
                .map(|n| (n.clone(), Tally::default()))
                .collect(),
            left: sessions.len(),
            ..Live::default()
        };
        assert_eq!(live.place(), "nothing has started yet");
        assert_eq!(live.time_left(Duration::ZERO), None);
        let raw = RawResponse {
            client_cpu_ns: None,
            sent_ns: 0,
            done_ns: 0,
            status: Some(200),
            content_type: None,
            arrivals: Vec::new(),
            error: None,
            body: br#"{"choices":[{"finish_reason":"stop"}]}"#.to_vec(),
        };
        let header = RequestHeader {
            scored: true,
            ..RequestHeader::default()
        };
        let mut record = RequestRecord::assemble(header, &raw, ServerKind::Mock);
        for session in &sessions[..3] {
            live.session(session);
            record.sent_ns = 1_000_000_000;
            record.first_token_ns = Some(1_250_000_000);
            record.last_token_ns = Some(2_250_000_000);
            record.generated_tokens = Some(101);
            record.first_event_tokens = Some(1);
            live.request(&session.arm, &record);
            live.committed(session, Duration::from_mins(1));
        }
        assert_eq!(live.place(), "quartet 1 of 2: A [B] B A");
        assert_eq!(
            live.rates(),
            "A 100.0 tok/s, first token 0.250 s (1 sessions) · B 100.0 tok/s, first token 0.250 s (1 sessions)"
        );
        // Six sessions are left, the first of them half done.
        let left = live.time_left(Duration::from_secs(30)).unwrap();
        assert_eq!(left, Duration::from_secs(6 * 60 - 30));
        assert_eq!(in_words(left), "about 6 min left");
        assert_eq!(in_words(Duration::from_mins(121)), "about 2 h 1 min left");
        live.session(&sessions[0]);
        assert_eq!(live.place(), "burn-in: [A], not scored");
    }
}
