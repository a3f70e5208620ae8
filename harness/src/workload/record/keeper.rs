//! What is kept of a recording: bodies, index and answers, written by a thread of its own so that
//! no request waits for the disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::SystemTime;

use super::super::folder::{ANSWERS, INDEX, Lines, body_name, claim, write_whole};
use super::super::{
    AnswerLine, IndexHead, IndexLine, SCHEMA, WorkloadError, redact_body, redact_target,
};
use crate::archive::{sha256_hex, utc_rfc3339};

/// Longest body that is kept.
pub(super) const MAX_BODY_BYTES: usize = 64 << 20;

/// Ends of paths at which a body asks for an answer.
const ASKING: [&str; 8] = [
    "/chat/completions",
    "/completions",
    "/completion",
    "/responses",
    "/messages",
    "/generate",
    "/api/chat",
    "/infill",
];

/// Whether the body of such a request is kept.
pub(super) fn is_asking(method: &str, target: &str) -> bool {
    let path = target
        .split('?')
        .next()
        .unwrap_or(target)
        .trim_end_matches('/');
    method == "POST" && ASKING.iter().any(|end| path.ends_with(end))
}

/// A request whose body is kept: its number and its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    /// From 1, in the order of arrival.
    pub(super) number: u32,
    /// When its first byte came, monotonic.
    pub(super) arrived_ns: u64,
    /// When the first ticket's did.
    pub(super) origin_ns: u64,
}

impl Ticket {
    fn at_s(self) -> f64 {
        seconds(self.arrived_ns.saturating_sub(self.origin_ns))
    }
}

/// Whole microseconds: finer is no property of an arrival.
fn seconds(ns: u64) -> f64 {
    (ns / 1000) as f64 / 1e6
}

/// What connections tell the keeper.
#[derive(Debug)]
pub(super) enum Note {
    /// A request's body is complete.
    Body {
        ticket: Ticket,
        target: String,
        /// Absent where it was longer than [`MAX_BODY_BYTES`].
        body: Option<Vec<u8>>,
        bytes: u64,
        encoding: Option<String>,
    },
    /// A request is over.
    Answer {
        ticket: Ticket,
        status: Option<u16>,
        bytes: u64,
        ended_ns: u64,
        ended: &'static str,
    },
}

/// How much a recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Bodies written.
    pub bodies: u32,
    /// Of them, those in which something was redacted.
    pub redacted: u32,
    /// Requests whose body was not kept.
    pub left_out: u32,
    /// Requests that ended, in whatever way.
    pub ended: u32,
}

/// The folder being written.
pub(super) struct Keeper {
    folder: PathBuf,
    index: Lines,
    answers: Lines,
    kept: Kept,
}

impl Keeper {
    /// Makes the folder, which must be new or empty, and begins its files.
    pub(super) fn begin(folder: &Path, from: &str) -> Result<Self, WorkloadError> {
        claim(folder)?;
        let mut index = Lines::create(folder.join(INDEX))?;
        index.add(&IndexHead {
            schema: SCHEMA.to_owned(),
            made_by: "record".to_owned(),
            utc: utc_rfc3339(SystemTime::now()),
            from: from.to_owned(),
            assumed: Vec::new(),
        })?;
        Ok(Self {
            answers: Lines::create(folder.join(ANSWERS))?,
            folder: folder.to_path_buf(),
            index,
            kept: Kept::default(),
        })
    }

    /// Writes whatever connections tell until the last of them is gone. `said` gets a line for
    /// people about each request.
    pub(super) fn keep(
        mut self,
        notes: &Receiver<Note>,
        said: &dyn Fn(&str),
    ) -> Result<Kept, WorkloadError> {
        for note in notes {
            match note {
                Note::Body {
                    ticket,
                    target,
                    body,
                    bytes,
                    encoding,
                } => {
                    let line = self.body(ticket, &target, body, bytes, encoding)?;
                    self.index.add(&line)?;
                    said(&told(&line));
                }
                Note::Answer {
                    ticket,
                    status,
                    bytes,
                    ended_ns,
                    ended,
                } => {
                    self.kept.ended += 1;
                    self.answers.add(&AnswerLine {
                        number: ticket.number,
                        status,
                        bytes,
                        wall_s: seconds(ended_ns.saturating_sub(ticket.arrived_ns)),
                        ended: ended.to_owned(),
                    })?;
                }
            }
        }
        Ok(self.kept)
    }

    fn body(
        &mut self,
        ticket: Ticket,
        target: &str,
        body: Option<Vec<u8>>,
        bytes: u64,
        encoding: Option<String>,
    ) -> Result<IndexLine, WorkloadError> {
        let mut line = IndexLine {
            number: ticket.number,
            at_s: Some(ticket.at_s()),
            path: redact_target(target),
            bytes,
            ..IndexLine::default()
        };
        let encoded = encoding.filter(|e| !e.eq_ignore_ascii_case("identity"));
        let redacted = match (body, encoded) {
            (_, Some(encoding)) => Err(format!(
                "content-encoding {encoding}: secrets in it cannot be found"
            )),
            (None, None) => Err(format!("longer than {MAX_BODY_BYTES} bytes")),
            // What is no JSON no study replays, and its secrets are not found.
            (Some(body), None) => redact_body(&body),
        };
        match redacted {
            Ok(redacted) => {
                let file = body_name(ticket.number);
                write_whole(&self.folder.join(&file), &redacted.bytes)?;
                line.file = Some(file);
                line.sha256 = Some(sha256_hex(&redacted.bytes));
                line.redacted = redacted.what;
                self.kept.bodies += 1;
                self.kept.redacted += u32::from(!line.redacted.is_empty());
            }
            Err(why) => {
                line.left_out = Some(why);
                self.kept.left_out += 1;
            }
        }
        Ok(line)
    }
}

/// A line for people about a body.
fn told(line: &IndexLine) -> String {
    let at = line.at_s.unwrap_or_default();
    let outcome = match (&line.file, &line.left_out, line.redacted.len()) {
        (_, Some(why), _) => format!("not kept: {why}"),
        (Some(file), None, 0) => file.clone(),
        (Some(file), None, n) => format!("{file}, {n} secret(s) redacted"),
        (None, None, _) => "not kept".to_owned(),
    };
    format!("{at:9.3} s  {}  {} bytes  {outcome}", line.path, line.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_ask_for_an_answer_are_told_from_others() {
        for path in [
            "/v1/chat/completions",
            "/completion?x=1",
            "/v1/completions/",
            "/api/v1/messages",
        ] {
            assert!(is_asking("POST", path), "{path}");
        }
        for (method, path) in [
            ("GET", "/v1/completions"),
            ("POST", "/tokenize"),
            ("POST", "/v1/embeddings"),
        ] {
            assert!(!is_asking(method, path), "{path}");
        }
    }
}
