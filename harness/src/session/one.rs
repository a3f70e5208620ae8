//! One session: a fresh server, replayed against, stopped.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Cancel, Progress, SessionEnd};
use crate::archive::{ArchiveError, ArchiveWriter, SessionWriter, session_folder_name};
use crate::host::{Sampler, now_ns};
use crate::replay::{PromptRecord, Request, RequestHeader, RequestRecord, send};
use crate::server::{
    HashCache, LaunchError, Programs, ServerProcess, StopMode, describe, log_tail,
};
use crate::study::{Arm, Body, PlannedSession, Study};

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

        let mut records = Vec::new();
        let warmups = self.study.workload.warmups.iter().map(|b| (b, false));
        let bodies = self.study.workload.bodies.iter().map(|b| (b, true));
        let total = self.study.workload.warmups.len() + self.study.workload.bodies.len();
        let mut broken = None;
        for (index, (body, scored)) in (0_u32..).zip(warmups.chain(bodies)) {
            self.progress
                .step(&format!("request {}/{total}: {}", index + 1, body.name));
            let record = self.replay(writer, &server, index, body, scored)?;
            if self.cancel.is_set() {
                return Err(Failure::Interrupted);
            }
            let detail = json!({ "session": name, "index": index, "body": body.name, "error": record.error });
            self.archive.event("request", detail)?;
            broken = self.fault(&record);
            records.push(record);
            if broken.is_some() {
                break;
            }
        }

        if broken.is_some() {
            // A server that dies closes its connections a little before it can be waited for.
            wait_for_exit(&mut server, Duration::from_millis(500));
        } else if server.exited().is_none() {
            self.ask_prompts(writer, &server, &records)?;
        }
        let died = server.exited();
        self.progress.step("stopping the server");
        let stop = server.stop(Duration::from_secs_f64(limits.stop_grace_s));
        let ended_ns = now_ns();
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

    fn replay(
        &self,
        writer: &SessionWriter,
        server: &ServerProcess,
        index: u32,
        body: &Body,
        scored: bool,
    ) -> Result<RequestRecord, Failure> {
        let request = Request {
            port: server.port(),
            path: &self.study.workload.path,
            body: Some(&body.bytes),
            timeout: self.study.workload.timeout,
        };
        let raw = send(&request, &|| self.cancel.is_set());
        let stem = body.name.strip_suffix(".json").unwrap_or(&body.name);
        let header = RequestHeader {
            index,
            body: body.name.clone(),
            body_sha256: body.sha256.clone(),
            scored,
            stream: format!("{index:02}-{stem}"),
        };
        let record = RequestRecord::assemble(header, &raw, self.arm.kind);
        writer.request(&record, &raw)?;
        Ok(record)
    }

    /// Asks for the prompt ids that the answers did not show. After the replay, so in no time that
    /// is published; a server that cannot say leaves them absent.
    fn ask_prompts(
        &self,
        writer: &SessionWriter,
        server: &ServerProcess,
        records: &[RequestRecord],
    ) -> Result<(), Failure> {
        let workload = &self.study.workload;
        let bodies = workload.warmups.iter().chain(&workload.bodies);
        let unseen: Vec<_> = records
            .iter()
            .zip(bodies)
            .filter(|(r, _)| r.prompt_hash.is_none())
            .collect();
        if unseen.is_empty() || !self.arm.kind.tokenises_on_request() {
            return Ok(());
        }
        self.progress.step("asking for prompt tokens");
        let post = |path: &str, body: &[u8]| {
            let request = Request {
                port: server.port(),
                path,
                body: Some(body),
                timeout: workload.timeout,
            };
            send(&request, &|| self.cancel.is_set())
        };
        let mut prompts = Vec::new();
        for (record, body) in unseen {
            let asked = PromptRecord::ask(record.index, &body.name, &body.bytes, post);
            prompts.push(asked);
            if self.cancel.is_set() {
                return Err(Failure::Interrupted);
            }
        }
        Ok(writer.prompts(&prompts)?)
    }

    /// What makes a request fail its session.
    fn fault(&self, record: &RequestRecord) -> Option<String> {
        let about = |what: String| format!("request {} ({}): {what}", record.index, record.body);
        if let Some(error) = &record.error {
            return Some(about(error.clone()));
        }
        let expected = self.study.workload.expect_cached;
        expected
            .broken_by(record.index, record.cached_tokens)
            .map(about)
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
