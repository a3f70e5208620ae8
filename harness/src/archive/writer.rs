//! Writes an archive: plan first, sessions one at a time, sealed once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::crash;
use super::disk::{hash_file, sha256_hex, sync_folder, write_atomic, write_synced};
use super::event::EventLog;
use super::format::document;
use super::layout::{
    FIGURES, HOST, MANIFEST, PLAN, SEAL, SESSION, SESSIONS, STUDY, SUMS, WORKLOAD,
    session_folder_name, slug, utc_compact,
};
use super::reader::Archive;
use super::session_writer::{SessionSummary, SessionWriter};
use super::{ArchiveError, manifest_bytes, sums};
use crate::derive::{Figures, followed};
use crate::host::HostFacts;
use crate::study::{Plan, PlannedSession};

/// An archive under way. Dropping it leaves a resumable folder; [`ArchiveWriter::seal`] ends it.
#[derive(Debug)]
pub struct ArchiveWriter {
    path: PathBuf,
    plan: Plan,
    events: Arc<EventLog>,
}

impl ArchiveWriter {
    /// Creates `<root>/<utc>-<study>-<short id>/` with the study file, plan, host and bodies, all
    /// fsynced, before any server starts. `workload` pairs a body's file name with its bytes. The
    /// folder appears under its name only when complete.
    pub fn create(
        root: &Path,
        study_toml: &[u8],
        plan: &Plan,
        host: &HostFacts,
        workload: &[(String, Vec<u8>)],
    ) -> Result<Self, ArchiveError> {
        fs::create_dir_all(root).map_err(ArchiveError::io("create", root))?;
        let now = SystemTime::now();
        let unique = format!("{now:?} {} {}", std::process::id(), plan.study_sha256);
        let short = sha256_hex(unique.as_bytes());
        let name = format!("{}-{}-{}", utc_compact(now), slug(&plan.study), &short[..8]);
        let temporary = root.join(format!(".{name}.partial"));
        let path = root.join(&name);
        let made = Self::fill(&temporary, study_toml, plan, host, workload);
        if let Err(error) = made {
            // The folder is hidden and has no name that `open` accepts; the first error matters.
            let _ = fs::remove_dir_all(&temporary);
            return Err(error);
        }
        fs::rename(&temporary, &path).map_err(ArchiveError::io("rename into place", &path))?;
        crash::step("rename of the archive");
        sync_folder(root)?;
        let (events, _) = EventLog::open(&path)?;
        let writer = Self {
            path,
            plan: plan.clone(),
            events: Arc::new(events),
        };
        writer.event(
            "archive-created",
            json!({ "archive": name, "study": plan.study }),
        )?;
        Ok(writer)
    }

    fn fill(
        folder: &Path,
        study_toml: &[u8],
        plan: &Plan,
        host: &HostFacts,
        workload: &[(String, Vec<u8>)],
    ) -> Result<(), ArchiveError> {
        let bodies = folder.join(WORKLOAD);
        fs::create_dir_all(&bodies).map_err(ArchiveError::io("create", &bodies))?;
        let sessions = folder.join(SESSIONS);
        fs::create_dir_all(&sessions).map_err(ArchiveError::io("create", &sessions))?;
        write_synced(&folder.join(STUDY), study_toml)?;
        write_synced(&folder.join(PLAN), &document(PLAN, plan)?)?;
        write_synced(&folder.join(HOST), &document(HOST, host)?)?;
        for (name, body) in workload {
            if slug(name) != *name {
                return Err(ArchiveError::Misuse(format!(
                    "body name {name:?} is not a plain file name (letters, digits, `.`, `_`, `-`)"
                )));
            }
            write_synced(&bodies.join(name), body)?;
        }
        sync_folder(&bodies)?;
        sync_folder(&sessions)?;
        sync_folder(folder)
    }

    /// Opens an unsealed archive to go on with it: the session that was under way is discarded, a
    /// torn last event is cut, and sessions whose own hashes no longer hold are discarded. All of
    /// it is recorded as events.
    pub fn resume(path: &Path) -> Result<Self, ArchiveError> {
        let no_archive = |reason: String| ArchiveError::NotAnArchive {
            path: path.to_path_buf(),
            reason,
        };
        let path = path.canonicalize().map_err(|e| no_archive(e.to_string()))?;
        if !path.join(PLAN).is_file() {
            return Err(no_archive(format!("there is no {PLAN} in it")));
        }
        if path.join(SEAL).exists() {
            return Err(ArchiveError::Sealed(path));
        }
        let plan = Archive::read_plan(&path)?;
        let (events, torn) = EventLog::open(&path)?;
        let writer = Self {
            path,
            plan,
            events: Arc::new(events),
        };
        let mut committed = BTreeSet::new();
        for event in Archive::open(&writer.path)?.events()? {
            let name = event.detail["session"].as_str().unwrap_or_default();
            match event.kind.as_str() {
                "session-committed" => committed.insert(name.to_owned()),
                "session-discarded" => committed.remove(name),
                _ => false,
            };
        }
        writer.event("resumed", json!({ "torn_event_bytes": torn }))?;
        writer.discard_partial()?;
        for planned in &writer.plan.sessions {
            let folder = writer
                .path
                .join(SESSIONS)
                .join(session_folder_name(planned));
            if !folder.exists() {
                continue;
            }
            let name = session_folder_name(planned);
            if let Err(reason) = SessionSummary::verify(&folder, planned) {
                let detail = json!({ "session": name, "reason": reason });
                writer.event("session-discarded", detail)?;
                fs::remove_dir_all(&folder).map_err(ArchiveError::io("discard", &folder))?;
            } else if !committed.contains(&name) {
                // Killed after the rename and before the line that says so.
                let summary = folder.join(SESSION);
                let digest = hash_file(&summary).map_err(ArchiveError::io("hash", &summary))?;
                let detail =
                    json!({ "session": name, "session_json_sha256": digest, "on_resume": true });
                writer.event("session-committed", detail)?;
            }
        }
        Ok(writer)
    }

    /// Removes what an interrupted writer left: hidden `.NAME.partial` entries, and figures or a
    /// manifest written by a seal that did not finish.
    fn discard_partial(&self) -> Result<(), ArchiveError> {
        for folder in [self.path.clone(), self.path.join(SESSIONS)] {
            for entry in fs::read_dir(&folder).map_err(ArchiveError::io("list", &folder))? {
                let entry = entry.map_err(ArchiveError::io("list", &folder))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = entry.path();
                let unsealed =
                    folder == self.path && [FIGURES, MANIFEST, SUMS].contains(&name.as_str());
                let partial = name.starts_with('.') && name.ends_with(".partial");
                if !unsealed && !partial {
                    continue;
                }
                if path.is_dir() {
                    self.event(
                        "session-discarded",
                        json!({ "session": name, "reason": "interrupted" }),
                    )?;
                    fs::remove_dir_all(&path).map_err(ArchiveError::io("discard", &path))?;
                } else {
                    fs::remove_file(&path).map_err(ArchiveError::io("discard", &path))?;
                }
                crash::step("discarding what was begun");
            }
        }
        Ok(())
    }

    /// The archive's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The plan being followed.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Appends one line to `events.jsonl`, fsynced.
    pub fn event(&self, kind: &str, detail: Value) -> Result<(), ArchiveError> {
        self.events.push(kind, detail)
    }

    /// Sessions of the plan that are complete and whose files' hashes hold, in plan order.
    pub fn finished_sessions(&self) -> Result<Vec<PlannedSession>, ArchiveError> {
        let mut finished = Vec::new();
        for planned in &self.plan.sessions {
            let name = session_folder_name(planned);
            let folder = self.path.join(SESSIONS).join(&name);
            if folder.exists() {
                SessionSummary::verify(&folder, planned).map_err(|reason| {
                    ArchiveError::malformed(&format!("{SESSIONS}/{name}"), None, reason)
                })?;
                finished.push(planned.clone());
            }
        }
        Ok(finished)
    }

    /// Starts recording a session in a temporary folder.
    pub fn begin_session(&self, planned: &PlannedSession) -> Result<SessionWriter, ArchiveError> {
        let name = session_folder_name(planned);
        if !self.plan.sessions.contains(planned) {
            return Err(ArchiveError::Misuse(format!(
                "session {name} is not in the plan"
            )));
        }
        let sessions = self.path.join(SESSIONS);
        if sessions.join(&name).exists() {
            return Err(ArchiveError::Misuse(format!(
                "session {name} is already recorded"
            )));
        }
        SessionWriter::begin(&sessions, planned, Arc::clone(&self.events))
    }

    /// Writes figures, manifest, SHA256SUMS and SEAL; nothing is written after that. Every planned session
    /// must be there, up to the planned look that ended the study if one did. Returns the archive's
    /// folder.
    pub fn seal(self, figures: &Figures) -> Result<PathBuf, ArchiveError> {
        let finished = self.finished_sessions()?;
        if finished != followed(&self.plan, figures.ended_early()) {
            return Err(ArchiveError::Misuse(format!(
                "{} of {} planned sessions are recorded; resume the study before sealing it",
                finished.len(),
                self.plan.sessions.len()
            )));
        }
        self.event(
            "sealing",
            json!({ "sessions": finished.len(), "figures": figures.len() }),
        )?;
        write_atomic(&self.path.join(FIGURES), &document(FIGURES, figures)?)?;
        let manifest = manifest_bytes(&self.path, figures.verdict())?;
        write_atomic(&self.path.join(MANIFEST), &manifest)?;
        write_atomic(&self.path.join(SUMS), &sums(&manifest)?)?;
        let seal = format!("{}  {MANIFEST}\n", sha256_hex(&manifest));
        write_atomic(&self.path.join(SEAL), seal.as_bytes())?;
        Ok(self.path)
    }
}
