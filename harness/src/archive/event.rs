//! `events.jsonl`: the run's append-only log. Each line carries the sha256 of the line before, so
//! a line that is edited, dropped or moved breaks the chain.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ArchiveError;
use super::crash;
use super::disk::sha256_hex;
use super::format::{SCHEMA, check_schema};
use super::json;
use super::layout::{EVENTS, utc_rfc3339};

/// One line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// `major.minor`.
    pub schema: String,
    /// Position from 0.
    pub seq: u64,
    /// Wall-clock time, for people; never used in arithmetic.
    pub utc: String,
    /// What happened.
    pub kind: String,
    /// More about it.
    pub detail: Value,
    /// sha256 of the previous line without its newline; 64 zeros for the first.
    pub previous: String,
}

/// The `previous` of the first event.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The open log.
#[derive(Debug)]
pub(super) struct EventLog {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    next: u64,
    previous: String,
}

impl EventLog {
    /// Opens the log of an archive folder, creating it when absent. A torn last line (no newline:
    /// the process was killed while writing it) is cut off; its length in bytes is returned.
    pub(super) fn open(archive: &Path) -> Result<(Self, u64), ArchiveError> {
        let path = archive.join(EVENTS);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(ArchiveError::io("read", &path)(e)),
        };
        let whole = bytes
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        let torn = (bytes.len() - whole) as u64;
        let events = parse(&bytes[..whole])?;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(ArchiveError::io("open", &path))?;
        if torn > 0 {
            file.set_len(whole as u64)
                .map_err(ArchiveError::io("cut the torn tail of", &path))?;
        }
        let previous = bytes[..whole]
            .strip_suffix(b"\n")
            .map_or(GENESIS.into(), |b| {
                sha256_hex(b.rsplit(|&c| c == b'\n').next().unwrap_or(b))
            });
        let state = State {
            file,
            next: events.len() as u64,
            previous,
        };
        Ok((
            Self {
                path,
                state: Mutex::new(state),
            },
            torn,
        ))
    }

    /// Appends and fsyncs one event.
    pub(super) fn push(&self, kind: &str, detail: Value) -> Result<(), ArchiveError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event {
            schema: SCHEMA.into(),
            seq: state.next,
            utc: utc_rfc3339(SystemTime::now()),
            kind: kind.into(),
            detail,
            previous: state.previous.clone(),
        };
        let mut line = serde_json::to_vec(&event)
            .map_err(|e| ArchiveError::malformed(EVENTS, None, e.to_string()))?;
        let hash = sha256_hex(&line);
        line.push(b'\n');
        crash::write_all(&mut state.file, &format!("event {kind}"), &line)
            .map_err(ArchiveError::io("append to", &self.path))?;
        state
            .file
            .sync_data()
            .map_err(ArchiveError::io("fsync", &self.path))?;
        state.next += 1;
        state.previous = hash;
        Ok(())
    }
}

/// Parses the log; every line must be whole and the chain unbroken.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Event>, ArchiveError> {
    let mut events = Vec::new();
    let mut previous = GENESIS.to_string();
    for (i, line) in super::reader::whole_lines(EVENTS, bytes)?.enumerate() {
        let at = Some(i + 1);
        let value =
            json::parse(line).map_err(|e| ArchiveError::malformed(EVENTS, at, e.to_string()))?;
        check_schema(EVENTS, &value)?;
        let event: Event = serde_json::from_value(value)
            .map_err(|e| ArchiveError::malformed(EVENTS, at, e.to_string()))?;
        if event.seq != i as u64 {
            return Err(ArchiveError::malformed(
                EVENTS,
                at,
                format!("`seq` is {}, expected {i}", event.seq),
            ));
        }
        if event.previous != previous {
            return Err(ArchiveError::malformed(
                EVENTS,
                at,
                "`previous` is not the hash of the line before",
            ));
        }
        previous = sha256_hex(line);
        events.push(event);
    }
    Ok(events)
}
