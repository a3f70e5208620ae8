//! Reads an archive into typed facts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ArchiveError;
use super::disk::sha256_hex;
use super::event::{self, Event};
use super::format::check_schema;
use super::json;
use super::layout::{
    END, EVENTS, FIGURES, HOST, HOST_SAMPLES, LAUNCH, MANIFEST, PLAN, PROMPTS, READBACK, REQUESTS,
    SEAL, SERVER_LOG, SESSIONS, STREAMS, STUDY, SWITCHES, WORKLOAD, session_folder_name,
};
use super::seal::{Manifest, parse_manifest};
use crate::derive::Figures;
use crate::host::{HostFacts, HostSample};
use crate::replay::{PromptRecord, RawResponse, RequestRecord, SwitchRecord};
use crate::server::{LaunchFacts, Readback};
use crate::session::SessionEnd;
use crate::study::{Plan, PlannedSession};

/// Longest raw stream that is unpacked; a larger one is an error, not an allocation.
const STREAM_LIMIT_BYTES: u64 = 1 << 30;

/// How much of a server's log is read for settings: it tells them first.
const LOG_LIMIT_BYTES: usize = 1 << 20;

/// Everything that figures are derived from.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The study file as run.
    pub study_toml: Vec<u8>,
    /// The plan.
    pub plan: Plan,
    /// The machine.
    pub host: HostFacts,
    /// The run's log.
    pub events: Vec<Event>,
    /// Recorded sessions in plan order.
    pub sessions: Vec<SessionFacts>,
}

/// One session's facts.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFacts {
    /// The plan's entry.
    pub planned: PlannedSession,
    /// How the server was started.
    pub launch: LaunchFacts,
    /// Requests in the order they were sent.
    pub requests: Vec<RequestRecord>,
    /// Prompts asked for after the last answer; none where the server's answers show their hashes.
    pub prompts: Vec<PromptRecord>,
    /// What was read back of the server; absent in archives before that.
    pub readback: Option<Readback>,
    /// Telemetry.
    pub samples: Vec<HostSample>,
    /// How it ended.
    pub end: SessionEnd,
    /// Calls that switched the server between the arms of a paired study; none in any other, and
    /// none where fields of the requests do it.
    pub switches: Vec<SwitchRecord>,
    /// Whose half of a paired session this is; absent for a whole one, as it is recorded.
    pub half: Option<Half>,
}

/// One arm's requests of a paired session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    /// The session's folder.
    pub folder: String,
    /// The arm.
    pub arm: String,
    /// Each request's place among the arm's own, by its index: what stands at one place of both
    /// halves is the same body.
    pub places: BTreeMap<u32, u32>,
}

impl SessionFacts {
    /// The session's folder name.
    pub fn name(&self) -> String {
        match &self.half {
            Some(half) => half.folder.clone(),
            None => session_folder_name(&self.planned),
        }
    }

    /// What ids of figures over its requests begin with.
    pub fn scope(&self) -> String {
        match &self.half {
            Some(half) => format!("session/{}/{}", half.folder, half.arm),
            None => format!("session/{}", self.name()),
        }
    }

    /// What tells a request from the others of its arm in every session: its index, or its place in
    /// the arm's half.
    pub fn place(&self, index: u32) -> u32 {
        let half = self.half.as_ref();
        half.and_then(|half| half.places.get(&index).copied())
            .unwrap_or(index)
    }

    /// sha256 over a request's prompt ids: as its answer says, else as the server tokenised it
    /// afterwards.
    pub fn prompt_hash<'a>(&'a self, request: &'a RequestRecord) -> Option<&'a str> {
        request.prompt_hash.as_deref().or_else(|| {
            // Each body is asked for once, under the index of its first request.
            let asked = self.prompts.iter();
            let same = |p: &&PromptRecord| p.index == request.index;
            let asked = asked
                .clone()
                .find(same)
                .or_else(|| asked.clone().find(|p| p.body == request.body))?;
            asked.prompt_hash.as_deref()
        })
    }
}

/// An archive opened for reading.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    plan: Plan,
}

impl Archive {
    /// Opens a folder as an archive: it must hold a plan of a known format.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let path = path
            .canonicalize()
            .map_err(ArchiveError::io("open", path))?;
        if !path.join(PLAN).is_file() {
            return Err(ArchiveError::NotAnArchive {
                path,
                reason: format!("there is no {PLAN} in it"),
            });
        }
        let plan = Self::read_plan(&path)?;
        Ok(Self { path, plan })
    }

    pub(super) fn read_plan(path: &Path) -> Result<Plan, ArchiveError> {
        read_document(path, PLAN)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder's name.
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether there is a seal (not whether it holds: see `check_seal` and the audit).
    pub fn is_sealed(&self) -> bool {
        self.path.join(SEAL).is_file()
    }

    /// Reads every fact; sessions not yet recorded are left out.
    pub fn facts(&self) -> Result<Facts, ArchiveError> {
        let mut sessions = Vec::new();
        for planned in &self.plan.sessions {
            if self
                .path
                .join(SESSIONS)
                .join(session_folder_name(planned))
                .is_dir()
            {
                sessions.push(self.session(planned)?);
            }
        }
        Ok(Facts {
            study_toml: self.read(STUDY)?,
            plan: self.plan.clone(),
            host: self.host()?,
            events: self.events()?,
            sessions,
        })
    }

    /// Reads one recorded session.
    pub fn session(&self, planned: &PlannedSession) -> Result<SessionFacts, ArchiveError> {
        Ok(SessionFacts {
            planned: planned.clone(),
            launch: self.launch(planned)?,
            requests: self.requests(planned)?,
            prompts: self.prompts(planned)?,
            readback: self.readback(planned)?,
            samples: self.samples(planned)?,
            end: self.end(planned)?,
            switches: self.switches(planned)?,
            half: None,
        })
    }

    /// Reads `host.json`.
    pub fn host(&self) -> Result<HostFacts, ArchiveError> {
        read_document(&self.path, HOST)
    }

    /// Reads a session's `launch.json`.
    pub fn launch(&self, planned: &PlannedSession) -> Result<LaunchFacts, ArchiveError> {
        read_document(&self.path, &session_file(planned, LAUNCH))
    }

    /// Reads a session's `requests.jsonl`.
    pub fn requests(&self, planned: &PlannedSession) -> Result<Vec<RequestRecord>, ArchiveError> {
        self.lines(&session_file(planned, REQUESTS))
    }

    /// Reads a session's `prompts.jsonl`; empty where no prompt was asked for.
    pub fn prompts(&self, planned: &PlannedSession) -> Result<Vec<PromptRecord>, ArchiveError> {
        let file = session_file(planned, PROMPTS);
        if self.path.join(&file).exists() {
            self.lines(&file)
        } else {
            Ok(Vec::new())
        }
    }

    /// Reads a session's `readback.json` with the beginning of its `server.log`; absent where it was
    /// not read back.
    pub fn readback(&self, planned: &PlannedSession) -> Result<Option<Readback>, ArchiveError> {
        let file = session_file(planned, READBACK);
        if !self.path.join(&file).exists() {
            return Ok(None);
        }
        let mut readback: Readback = read_document(&self.path, &file)?;
        let log = self.read(&session_file(planned, SERVER_LOG))?;
        let log = &log[..log.len().min(LOG_LIMIT_BYTES)];
        readback.log = String::from_utf8_lossy(log).into_owned();
        Ok(Some(readback))
    }

    /// Reads a session's `switches.jsonl`; empty where no call switched anything.
    pub fn switches(&self, planned: &PlannedSession) -> Result<Vec<SwitchRecord>, ArchiveError> {
        let file = session_file(planned, SWITCHES);
        if self.path.join(&file).exists() {
            self.lines(&file)
        } else {
            Ok(Vec::new())
        }
    }

    /// Reads a session's `host.jsonl`.
    pub fn samples(&self, planned: &PlannedSession) -> Result<Vec<HostSample>, ArchiveError> {
        self.lines(&session_file(planned, HOST_SAMPLES))
    }

    /// Reads a session's `end.json`.
    pub fn end(&self, planned: &PlannedSession) -> Result<SessionEnd, ArchiveError> {
        read_document(&self.path, &session_file(planned, END))
    }

    /// Reads one raw response by its stem in the session's `streams/`.
    pub fn raw(&self, planned: &PlannedSession, stream: &str) -> Result<RawResponse, ArchiveError> {
        let stem = format!(
            "{SESSIONS}/{}/{STREAMS}/{stream}",
            session_folder_name(planned)
        );
        let mut raw: RawResponse = read_document(&self.path, &format!("{stem}.arrivals.json"))?;
        let file = format!("{stem}.sse.zst");
        let packed = self.read(&file)?;
        let reader = zstd::Decoder::new(packed.as_slice())
            .map_err(|e| ArchiveError::malformed(&file, None, format!("not zstd: {e}")))?;
        std::io::Read::read_to_end(
            &mut std::io::Read::take(reader, STREAM_LIMIT_BYTES + 1),
            &mut raw.body,
        )
        .map_err(|e| ArchiveError::malformed(&file, None, format!("not whole zstd: {e}")))?;
        if raw.body.len() as u64 > STREAM_LIMIT_BYTES {
            return Err(ArchiveError::malformed(
                &file,
                None,
                "unpacks to more than 1 GiB",
            ));
        }
        Ok(raw)
    }

    /// Reads a request body and its sha256.
    pub fn body(&self, name: &str) -> Result<(Vec<u8>, String), ArchiveError> {
        let bytes = self.read(&format!("{WORKLOAD}/{name}"))?;
        let hash = sha256_hex(&bytes);
        Ok((bytes, hash))
    }

    /// The run's log; its chain must be unbroken.
    pub fn events(&self) -> Result<Vec<Event>, ArchiveError> {
        event::parse(&self.read(EVENTS)?)
    }

    /// Published figures; absent before sealing.
    pub fn figures(&self) -> Result<Option<Figures>, ArchiveError> {
        if !self.path.join(FIGURES).is_file() {
            return Ok(None);
        }
        read_document(&self.path, FIGURES).map(Some)
    }

    /// The manifest; absent before sealing.
    pub fn manifest(&self) -> Result<Option<Manifest>, ArchiveError> {
        if !self.path.join(MANIFEST).is_file() {
            return Ok(None);
        }
        parse_manifest(&self.read(MANIFEST)?).map(Some)
    }

    /// Bytes of a file inside the archive.
    pub fn read(&self, file: &str) -> Result<Vec<u8>, ArchiveError> {
        read_file(&self.path, file)
    }

    fn lines<T: DeserializeOwned>(&self, file: &str) -> Result<Vec<T>, ArchiveError> {
        let bytes = self.read(file)?;
        let mut out = Vec::new();
        for (i, line) in whole_lines(file, &bytes)?.enumerate() {
            let bad =
                |e: serde_json::Error| ArchiveError::malformed(file, Some(i + 1), e.to_string());
            let value = json::parse(line).map_err(bad)?;
            check_schema(file, &value)?;
            out.push(serde_json::from_value(value).map_err(bad)?);
        }
        Ok(out)
    }
}

/// Splits JSON lines; a last line without its newline was never finished and is an error.
pub(super) fn whole_lines<'a>(
    file: &str,
    bytes: &'a [u8],
) -> Result<impl Iterator<Item = &'a [u8]>, ArchiveError> {
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        return Err(ArchiveError::malformed(
            file,
            None,
            "the last line has no newline: it was not finished",
        ));
    }
    Ok(bytes
        .split_inclusive(|&b| b == b'\n')
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line)))
}

fn session_file(planned: &PlannedSession, file: &str) -> String {
    format!("{SESSIONS}/{}/{file}", session_folder_name(planned))
}

fn read_file(archive: &Path, file: &str) -> Result<Vec<u8>, ArchiveError> {
    let path = archive.join(file);
    fs::read(&path).map_err(ArchiveError::io("read", &path))
}

/// A JSON document whose schema is known, untyped.
pub(super) fn read_value(archive: &Path, file: &str) -> Result<Value, ArchiveError> {
    parse_document(file, &read_file(archive, file)?)
}

fn read_document<T: DeserializeOwned>(archive: &Path, file: &str) -> Result<T, ArchiveError> {
    parse_document(file, &read_file(archive, file)?)
}

/// A JSON document whose schema is known; no key twice. `file` names it in errors.
pub(crate) fn parse_document<T: DeserializeOwned>(
    file: &str,
    bytes: &[u8],
) -> Result<T, ArchiveError> {
    let malformed = |e: serde_json::Error| ArchiveError::malformed(file, None, e.to_string());
    let value = json::parse(bytes).map_err(malformed)?;
    check_schema(file, &value)?;
    serde_json::from_value(value).map_err(malformed)
}
