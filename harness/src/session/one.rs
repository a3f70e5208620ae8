//! One session: a fresh server, replayed against, stopped.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::replay::Replay;
use super::{Cancel, Progress, SessionEnd};
use crate::archive::{ArchiveError, ArchiveWriter, SessionWriter, session_folder_name};
use crate::derive::{Terms, broken_terms};
use crate::host::{HostFacts, Sampler, now_ns};
use crate::server::{
    HashCache, LaunchError, LaunchFacts, Programs, Readback, Redaction, ServerProcess, StopMode,
    describe, log_tail,
};
use crate::study::{Arm, PlannedSession, Study};

/// How a session can fail; nothing of it is kept but the evidence in an event.
pub(super) enum Failure {
    Archive(ArchiveError),
    Launch(LaunchError),
    /// The server broke, or broke the study's terms.
    Server {
        reason: String,
        evidence: Value,
    },
    Interrupted,
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

/// Everything that a session needs.
pub(super) struct SessionRun<'a> {
    pub(super) study: &'a Study,
    pub(super) programs: &'a Programs,
    pub(super) archive: &'a ArchiveWriter,
    pub(super) planned: &'a PlannedSession,
    pub(super) arm: &'a Arm,
    pub(super) host: &'a HostFacts,
    pub(super) cancel: &'a Cancel,
    pub(super) progress: &'a dyn Progress,
}

impl SessionRun<'_> {
    /// Runs the session and commits it. On failure the server is gone and the session discarded.
    pub(super) fn run(&self, hashes: &mut HashCache) -> Result<(), Failure> {
        let started_ns = now_ns();
        let writer = Arc::new(self.archive.begin_session(self.planned)?);
        let trouble = Arc::new(Mutex::new(None));
        let sampler = {
            let (writer, trouble) = (Arc::clone(&writer), Arc::clone(&trouble));
            Sampler::start(move |sample| {
                if let Err(e) = writer.host_sample(&sample) {
                    trouble
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(e);
                }
            })
        };
        let outcome = self.serve(&writer, started_ns, hashes);
        sampler.stop();
        outcome?;
        if let Some(error) = trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            return Err(error.into());
        }
        // The sampler is stopped, so this is the last handle.
        let Some(writer) = Arc::into_inner(writer) else {
            return Err(ArchiveError::Misuse("the session's writer is still shared".into()).into());
        };
        Ok(writer.commit()?)
    }

    fn serve(
        &self,
        writer: &SessionWriter,
        started_ns: u64,
        hashes: &mut HashCache,
    ) -> Result<(), Failure> {
        let cancelled = || self.cancel.is_set();
        let name = session_folder_name(self.planned);
        self.progress.step("launching the server");
        let log = writer.log_file()?;
        let log_path = writer.log_path();
        let limits = &self.study.server;
        let launched = ServerProcess::launch(
            self.arm,
            self.programs,
            limits,
            hashes,
            (&log, &log_path),
            &cancelled,
        );
        let (mut server, facts) = launched.map_err(Failure::Launch)?;
        writer.launch(&facts)?;
        let detail = json!({ "session": name, "pid": facts.pid, "port": facts.port });
        self.archive.event("server-ready", detail)?;

        let pid = server.pid();
        let redaction = Redaction::of(&self.arm.env);
        let asked = Readback::ask(self.arm.kind, server.port(), pid, &cancelled);
        let mut readback = redaction.readback(asked);
        writer.readback(&readback)?;
        let mut replay = Replay::new(self, writer, server.port());
        // A server that is not what the study says need not be measured.
        let broken = match self.broken_terms(&facts, &readback, &log_path) {
            Some(what) => Some(what),
            None => replay.all()?,
        };
        replay.write_switches()?;
        if broken.is_some() && self.cancel.is_set() {
            return Err(Failure::Interrupted);
        }
        if server.exited().is_none() {
            readback.at_end(pid);
            readback = redaction.readback(readback);
            writer.readback(&readback)?;
        }
        if broken.is_some() {
            // A server that dies closes its connections a little before it can be waited for.
            wait_for_exit(&mut server, Duration::from_millis(500));
        } else if server.exited().is_none() {
            replay.ask_prompts()?;
        }
        let records = replay.records;
        let died = server.exited();
        self.progress.step("stopping the server");
        let stop = server.stop(Duration::from_secs_f64(limits.stop_grace_s));
        let ended_ns = now_ns();
        writer.redact_log(&redaction)?;
        let detail = json!({ "session": name, "mode": stop.mode, "port_free": stop.port_free });
        self.archive.event("server-stopped", detail)?;
        let reason = match (broken, died) {
            (Some(what), Some(status)) => {
                Some(format!("the server died ({}): {what}", describe(status)))
            }
            (None, Some(status)) => Some(format!(
                "the server died after its last answer ({})",
                describe(status)
            )),
            (Some(what), None) => Some(what),
            (None, None) if stop.mode == StopMode::Died => {
                Some("the server died while it was being stopped".into())
            }
            (None, None) if !stop.port_free => {
                Some(format!("port {} is still taken after the stop", facts.port))
            }
            (None, None) => None,
        };
        let end = SessionEnd {
            schema: "1.0".to_owned(),
            started_ns,
            ended_ns,
            stop,
            error: reason.clone(),
        };
        writer.end(&end)?;
        match reason {
            None => Ok(()),
            Some(reason) => {
                let log_tail = log_tail(&read_log(&log_path));
                let evidence = json!({ "launch": facts, "requests": records, "end": end, "log_tail": log_tail });
                Err(Failure::Server {
                    reason: format!("{reason}; the end of its log:\n{log_tail}"),
                    evidence,
                })
            }
        }
    }
}

impl SessionRun<'_> {
    /// In a strict study, what the server is found to be that it should not.
    fn broken_terms(
        &self,
        launch: &LaunchFacts,
        readback: &Readback,
        log_path: &Path,
    ) -> Option<String> {
        if !self.study.strict {
            return None;
        }
        let mut readback = readback.clone();
        let log = read_log(log_path);
        readback.log = Redaction::of(&self.arm.env).text(&String::from_utf8_lossy(&log));
        let terms = Terms {
            arm: self.arm,
            launch,
            readback: &readback,
            host: self.host,
        };
        let broken = broken_terms(&terms);
        (!broken.is_empty()).then(|| {
            format!(
                "the study is strict and the server of arm {:?} is not as it should be: {}",
                self.arm.name,
                broken.join("; ")
            )
        })
    }
}

fn wait_for_exit(server: &mut ServerProcess, limit: Duration) {
    let started = Instant::now();
    while server.exited().is_none() && started.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A log that cannot be read shows as an empty one: the failure itself is what matters then.
fn read_log(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_default()
}
