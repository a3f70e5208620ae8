//! Everything of an archive that can be read, read once. What cannot is a finding, and leaves the
//! rest to be checked.

use std::collections::BTreeSet;
use std::path::Path;

use super::Audit;
use crate::archive::{Archive, ArchiveError, Facts, SessionFacts, session_folder_name};
use crate::derive::{ended_by_look, followed};
use crate::study::{PlannedSession, StudyFile};

/// Facts, and what is missing from them.
pub(super) struct Evidence {
    /// What could be read; empty in place of what could not.
    pub(super) facts: Facts,
    /// The study file; absent if it does not parse.
    pub(super) study: Option<StudyFile>,
    /// Files that could not be read; a session's folder, with its `/`, where it had to be left out.
    unreadable: BTreeSet<String>,
    /// Sessions that must be there: all of the plan, or those up to the look that ended the study.
    pub(super) expected: Vec<PlannedSession>,
}

impl Evidence {
    /// Whether every fact could be read.
    pub(super) fn is_whole(&self) -> bool {
        self.unreadable.is_empty()
    }

    /// Whether a file, or the folder of its session, could not be read.
    pub(super) fn lacks(&self, file: &str) -> bool {
        let lies_in = |gone: &String| gone.ends_with('/') && file.starts_with(gone.as_str());
        self.unreadable.contains(file) || self.unreadable.iter().any(lies_in)
    }

    /// Expects only the sessions that are recorded, as of a study that is not at its end; how many.
    pub(super) fn keep_recorded(&mut self, archive: &Archive) -> usize {
        let folder =
            |p: &PlannedSession| archive.path().join("sessions").join(session_folder_name(p));
        self.expected.retain(|p| folder(p).is_dir());
        self.expected.len()
    }

    /// Reads an archive.
    pub(super) fn read(archive: &Archive, audit: &mut Audit) -> Self {
        let mut reading = Reading {
            archive,
            audit,
            unreadable: BTreeSet::new(),
        };
        let study_toml = reading.or_empty("study.toml", archive.read("study.toml"));
        let facts = Facts {
            plan: archive.plan().clone(),
            host: reading.or_empty("host.json", archive.host()),
            events: reading.or_empty("events.jsonl", archive.events()),
            sessions: archive
                .plan()
                .sessions
                .iter()
                .filter_map(|planned| reading.session(planned))
                .collect(),
            study_toml,
        };
        let study = reading.study(&facts.study_toml);
        let mut unreadable = reading.unreadable;
        let expected = followed(&facts.plan, ended_by_look(&facts));
        for planned in facts.plan.sessions.iter().filter(|p| !expected.contains(p)) {
            unreadable.remove(&format!("sessions/{}/", session_folder_name(planned)));
        }
        Self {
            facts,
            study,
            unreadable,
            expected,
        }
    }
}

struct Reading<'a> {
    archive: &'a Archive,
    audit: &'a mut Audit,
    unreadable: BTreeSet<String>,
}

impl Reading<'_> {
    fn keep<T>(&mut self, file: &str, read: Result<T, ArchiveError>) -> Option<T> {
        read.map_err(|error| {
            self.audit.fail_with(self.archive, file, &error);
            self.unreadable.insert(file.to_owned());
        })
        .ok()
    }

    fn or_empty<T: Default>(&mut self, file: &str, read: Result<T, ArchiveError>) -> T {
        self.keep(file, read).unwrap_or_default()
    }

    /// A session as far as it can be read; absent when nothing can be derived from what is left.
    fn session(&mut self, planned: &PlannedSession) -> Option<SessionFacts> {
        let archive = self.archive;
        let folder = format!("sessions/{}", session_folder_name(planned));
        if !archive.path().join(&folder).is_dir() {
            // Reported with the plan.
            self.unreadable.insert(format!("{folder}/"));
            return None;
        }
        let at = |name: &str| format!("{folder}/{name}");
        let launch = self.keep(&at("launch.json"), archive.launch(planned));
        let requests = self.keep(&at("requests.jsonl"), archive.requests(planned));
        let end = self.keep(&at("end.json"), archive.end(planned));
        let prompts = self.or_empty(&at("prompts.jsonl"), archive.prompts(planned));
        let readback = self.keep(&at("readback.json"), archive.readback(planned));
        let switches = self.or_empty(&at("switches.jsonl"), archive.switches(planned));
        let samples = self.or_empty(&at("host.jsonl"), archive.samples(planned));
        let (Some(launch), Some(requests), Some(end)) = (launch, requests, end) else {
            self.unreadable.insert(format!("{folder}/"));
            return None;
        };
        Some(SessionFacts {
            planned: planned.clone(),
            launch,
            requests,
            prompts,
            readback: readback.flatten(),
            samples,
            end,
            switches,
            half: None,
        })
    }

    fn study(&mut self, bytes: &[u8]) -> Option<StudyFile> {
        if self.unreadable.contains("study.toml") {
            return None;
        }
        let text = String::from_utf8_lossy(bytes);
        let parsed = StudyFile::parse(Path::new("study.toml"), &text);
        parsed
            .map_err(|error| self.audit.fail("study.toml", "", error.to_string()))
            .ok()
    }
}
