//! Writes one session: files appear in a hidden folder that is renamed when complete.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ArchiveError;
use super::crash;
use super::disk::{hash_file, sync_folder, write_synced};
use super::event::EventLog;
use super::format::{SCHEMA, check_schema, document, line};
use super::json;
use super::layout::{
    END, HOST_SAMPLES, LAUNCH, PROMPTS, READBACK, REQUESTS, SERVER_LOG, SESSION, STREAMS, SWITCHES,
    list_files, session_folder_name,
};
use crate::host::HostSample;
use crate::replay::{PromptRecord, RawResponse, RequestRecord, SwitchRecord};
use crate::server::{LaunchFacts, Readback, Redaction};
use crate::session::SessionEnd;
use crate::study::PlannedSession;

/// zstd level of the raw streams: they are small, so size matters more than speed.
const ZSTD_LEVEL: i32 = 9;

/// `session.json`: which planned session this is and the sha256 of each of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// `major.minor`.
    pub schema: String,
    /// The plan's entry.
    pub planned: PlannedSession,
    /// Path inside the session's folder to sha256; everything but this file.
    pub files: BTreeMap<String, String>,
}

impl SessionSummary {
    /// Reads `session.json` of a session's folder and checks it against the plan and the files.
    /// The error says what does not hold.
    pub fn verify(folder: &Path, planned: &PlannedSession) -> Result<Self, String> {
        let bytes = fs::read(folder.join(SESSION)).map_err(|e| format!("{SESSION}: {e}"))?;
        let value = json::parse(&bytes).map_err(|e| format!("{SESSION}: {e}"))?;
        check_schema(SESSION, &value).map_err(|e| e.to_string())?;
        let summary: Self = serde_json::from_value(value).map_err(|e| format!("{SESSION}: {e}"))?;
        if summary.planned != *planned {
            return Err(format!(
                "{SESSION}: `planned` differs from the plan's entry {}",
                planned.index
            ));
        }
        let mut seen = list_files(folder).map_err(|e| e.to_string())?;
        seen.retain(|f| f != SESSION);
        for file in &seen {
            let Some(expected) = summary.files.get(file) else {
                return Err(format!("{file} is not listed in {SESSION}"));
            };
            let found = hash_file(&folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
            if found != *expected {
                return Err(format!(
                    "{file}: sha256 is {found}, {SESSION} says {expected}"
                ));
            }
        }
        match summary.files.keys().find(|f| !seen.contains(f)) {
            Some(missing) => Err(format!("{missing} is missing")),
            None => Ok(summary),
        }
    }
}

/// A session being recorded. Methods take `&self`, so a sampler thread may share it. Dropping it
/// without [`SessionWriter::commit`] discards the session.
#[derive(Debug)]
pub struct SessionWriter {
    planned: PlannedSession,
    temporary: PathBuf,
    place: PathBuf,
    requests: Mutex<File>,
    samples: Mutex<File>,
    events: Arc<EventLog>,
    committed: bool,
}

impl SessionWriter {
    pub(super) fn begin(
        sessions: &Path,
        planned: &PlannedSession,
        events: Arc<EventLog>,
    ) -> Result<Self, ArchiveError> {
        let name = session_folder_name(planned);
        let temporary = sessions.join(format!(".{name}.partial"));
        if temporary.exists() {
            fs::remove_dir_all(&temporary).map_err(ArchiveError::io("discard", &temporary))?;
        }
        let streams = temporary.join(STREAMS);
        fs::create_dir_all(&streams).map_err(ArchiveError::io("create", &streams))?;
        let append = |file: &str| {
            let path = temporary.join(file);
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(ArchiveError::io("create", &path))
        };
        crash::step("a session's folder");
        let requests = Mutex::new(append(REQUESTS)?);
        let samples = Mutex::new(append(HOST_SAMPLES)?);
        append(SERVER_LOG)?;
        events.push("session-begun", json!({ "session": name }))?;
        Ok(Self {
            planned: planned.clone(),
            place: sessions.join(&name),
            temporary,
            requests,
            samples,
            events,
            committed: false,
        })
    }

    /// `server.log`, opened for appending: hand it to the server as stdout and stderr.
    pub fn log_file(&self) -> Result<File, ArchiveError> {
        let path = self.temporary.join(SERVER_LOG);
        OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(ArchiveError::io("open", &path))
    }

    /// Takes out of `server.log` what must not be published. For when the server is gone.
    pub(crate) fn redact_log(&self, redaction: &Redaction) -> Result<(), ArchiveError> {
        let path = self.log_path();
        let log = fs::read(&path).map_err(ArchiveError::io("read", &path))?;
        match redaction.bytes(&log) {
            Some(shown) => write_synced(&path, &shown),
            None => Ok(()),
        }
    }

    /// Path of `server.log` while the session runs.
    pub fn log_path(&self) -> PathBuf {
        self.temporary.join(SERVER_LOG)
    }

    /// Writes `launch.json`; again replaces it (ready time, libraries).
    pub fn launch(&self, facts: &LaunchFacts) -> Result<(), ArchiveError> {
        write_synced(&self.temporary.join(LAUNCH), &document(LAUNCH, facts)?)
    }

    /// Writes the raw stream, its arrival times and the request's line, fsynced. `record.stream`
    /// names the files in `streams/`.
    pub fn request(&self, record: &RequestRecord, raw: &RawResponse) -> Result<(), ArchiveError> {
        let streams = self.temporary.join(STREAMS);
        let path = streams.join(format!("{}.sse.zst", record.stream));
        let packed = zstd::encode_all(raw.body.as_slice(), ZSTD_LEVEL)
            .map_err(ArchiveError::io("compress", &path))?;
        write_synced(&path, &packed)?;
        let arrivals = format!("{}.arrivals.json", record.stream);
        write_synced(&streams.join(&arrivals), &line(&arrivals, raw)?)?;
        append_line(
            &self.requests,
            &self.temporary.join(REQUESTS),
            &line(REQUESTS, record)?,
            true,
        )
    }

    /// Appends a telemetry sample. Not fsynced until the commit: it must not disturb what it watches.
    pub fn host_sample(&self, sample: &HostSample) -> Result<(), ArchiveError> {
        append_line(
            &self.samples,
            &self.temporary.join(HOST_SAMPLES),
            &line(HOST_SAMPLES, sample)?,
            false,
        )
    }

    /// Writes `readback.json`; again replaces it (the process before the stop).
    pub fn readback(&self, facts: &Readback) -> Result<(), ArchiveError> {
        let bytes = document(READBACK, facts)?;
        write_synced(&self.temporary.join(READBACK), &bytes)
    }

    /// Writes `prompts.jsonl`, whole, fsynced.
    pub fn prompts(&self, records: &[PromptRecord]) -> Result<(), ArchiveError> {
        let lines: Result<Vec<_>, _> = records.iter().map(|r| line(PROMPTS, r)).collect();
        write_synced(&self.temporary.join(PROMPTS), &lines?.concat())
    }

    /// Writes `switches.jsonl`, whole, fsynced.
    pub fn switches(&self, records: &[SwitchRecord]) -> Result<(), ArchiveError> {
        let lines: Result<Vec<_>, _> = records.iter().map(|r| line(SWITCHES, r)).collect();
        write_synced(&self.temporary.join(SWITCHES), &lines?.concat())
    }

    /// Writes `end.json`.
    pub fn end(&self, facts: &SessionEnd) -> Result<(), ArchiveError> {
        write_synced(&self.temporary.join(END), &document(END, facts)?)
    }

    /// Hashes every file into `session.json`, fsyncs, renames the folder into place and records
    /// the commit as an event. Needs [`Self::launch`] and [`Self::end`] to have been written.
    pub fn commit(mut self) -> Result<(), ArchiveError> {
        for needed in [LAUNCH, END] {
            if !self.temporary.join(needed).exists() {
                return Err(ArchiveError::Misuse(format!(
                    "session committed without {needed}"
                )));
            }
        }
        let mut files = BTreeMap::new();
        for file in list_files(&self.temporary)? {
            let path = self.temporary.join(&file);
            File::open(&path)
                .and_then(|f| f.sync_all())
                .map_err(ArchiveError::io("fsync", &path))?;
            files.insert(
                file,
                hash_file(&path).map_err(ArchiveError::io("hash", &path))?,
            );
        }
        let summary = SessionSummary {
            schema: SCHEMA.into(),
            planned: self.planned.clone(),
            files,
        };
        write_synced(&self.temporary.join(SESSION), &document(SESSION, &summary)?)?;
        let digest = hash_file(&self.temporary.join(SESSION))
            .map_err(ArchiveError::io("hash", &self.temporary))?;
        sync_folder(&self.temporary.join(STREAMS))?;
        sync_folder(&self.temporary)?;
        fs::rename(&self.temporary, &self.place)
            .map_err(ArchiveError::io("rename into place", &self.place))?;
        crash::step("rename of a session");
        self.committed = true;
        sync_folder(self.place.parent().unwrap_or(Path::new(".")))?;
        let detail =
            json!({ "session": session_folder_name(&self.planned), "session_json_sha256": digest });
        self.events.push("session-committed", detail)
    }
}

impl Drop for SessionWriter {
    fn drop(&mut self) {
        if !self.committed {
            // A folder that cannot be removed now is removed by `resume`; it is hidden until then.
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

fn append_line(
    file: &Mutex<File>,
    path: &Path,
    line: &[u8],
    sync: bool,
) -> Result<(), ArchiveError> {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    if !sync {
        return file
            .write_all(line)
            .map_err(ArchiveError::io("append to", path));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    crash::write_all(&mut file, &name, line).map_err(ArchiveError::io("append to", path))?;
    file.sync_data().map_err(ArchiveError::io("fsync", path))
}
