//! `run --json`: what happens, one JSON object a line on standard output, as it happens. The names
//! are those of `docs/studies.md`; fields are only ever added.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::study::Outcome;
use super::{Exit, Failure};
use crate::archive::session_folder_name;
use crate::derive::Figures;
use crate::replay::RequestRecord;
use crate::session::{Progress, decoded, first_token_s};
use crate::study::{Plan, PlannedSession, Protocol};

/// `major.minor` of the lines.
const SCHEMA: &str = "1.0";

/// Writes events.
#[derive(Debug, Default)]
pub struct Events {
    gone: AtomicBool,
    protocol: Mutex<Protocol>,
}

impl Events {
    /// A study goes on when nobody reads its events any more; that is said once.
    fn say(&self, event: &str, fields: Value) {
        if self.gone.load(Ordering::SeqCst) {
            return;
        }
        let mut line = json!({ "event": event });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        let mut out = io::stdout().lock();
        if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
            self.gone.store(true, Ordering::SeqCst);
            eprintln!("events are no longer written: {error}");
        }
    }

    /// What the figures say, before they are sealed.
    pub fn verdict(&self, figures: &Figures, exit: Exit, reason: Option<&str>) {
        let comparisons: Vec<Value> = figures
            .comparisons()
            .iter()
            .map(|c| {
                let value = |name: &str| figures.value(&format!("{}/{name}", c.prefix));
                json!({
                    "metric": c.metric, "level": c.level, "base": c.base, "other": c.other,
                    "ratio": value("ratio"), "ratio_low": value("ratio_low"), "ratio_high": value("ratio_high"),
                })
            })
            .collect();
        let fields = json!({
            "sentence": figures.verdict().sentence, "primary": figures.primary(), "exit": exit as u8,
            "reason": reason, "comparisons": comparisons,
        });
        self.say("verdict", fields);
    }

    /// The archive is sealed: the last line of a study that came to its end.
    pub fn sealed(&self, outcome: &Outcome) {
        let fields = json!({
            "archive": outcome.archive, "exit": outcome.exit as u8, "reason": outcome.reason,
            "verdict": outcome.figures.verdict(),
        });
        self.say("study-sealed", fields);
    }

    /// The study stopped before its end: the last line then.
    pub fn stopped(&self, failure: &Failure) {
        let fields = json!({ "exit": failure.exit as u8, "reason": failure.message });
        self.say("study-stopped", fields);
    }
}

fn place(session: &PlannedSession) -> Value {
    json!({
        "session": session_folder_name(session), "index": session.index, "arm": session.arm,
        "role": session.role, "quartet": session.quartet, "pair": session.pair,
    })
}

impl Progress for Events {
    fn planned(&self, archive: &Path, plan: &Plan, finished: &[PlannedSession]) {
        *self.protocol.lock().unwrap_or_else(PoisonError::into_inner) = plan.protocol.clone();
        let names =
            |all: &[PlannedSession]| all.iter().map(session_folder_name).collect::<Vec<_>>();
        let fields = json!({
            "schema": SCHEMA, "study": plan.study, "archive": archive, "arms": plan.arms,
            "sessions": names(&plan.sessions), "finished": names(finished),
        });
        self.say("study-started", fields);
    }

    fn session(&self, session: &PlannedSession) {
        self.say("session-started", place(session));
    }

    fn step(&self, _: &str) {}

    fn request(&self, session: &PlannedSession, record: &RequestRecord) {
        let protocol = self.protocol.lock().unwrap_or_else(PoisonError::into_inner);
        let arm = protocol.arm_of(&record.body).unwrap_or(&session.arm);
        let decode = decoded(record).map(|(tokens, seconds)| tokens as f64 / seconds);
        let fields = json!({
            "session": session_folder_name(session), "arm": arm, "request": record.index, "body": record.body,
            "phase": record.phase, "scored": record.scored, "first_token_s": first_token_s(record),
            "client_wall_s": record.done_ns.saturating_sub(record.due_ns.unwrap_or(record.sent_ns)) as f64 / 1e9,
            "generated_tokens": record.generated_tokens, "cached_tokens": record.cached_tokens,
            "decode_rate": decode, "error": record.error,
        });
        self.say("request-finished", fields);
    }

    fn committed(&self, session: &PlannedSession) {
        self.say("session-ended", place(session));
    }

    fn finished(&self) {}
}
