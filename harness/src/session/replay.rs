//! A session's requests: phase after phase, sent as the plan says.

use std::collections::BTreeMap;

use serde_json::json;

use super::one::{Failure, SessionRun};
use crate::archive::{SessionWriter, session_folder_name};
use crate::replay::{
    PromptRecord, RawResponse, Request, RequestHeader, RequestRecord, SwitchRecord, Timed, send,
    send_on_schedule, send_with_workers,
};
use crate::study::{Body, Step, Switch, Way};

/// The requests of one session against the server on `port`.
pub(super) struct Replay<'a> {
    run: &'a SessionRun<'a>,
    writer: &'a SessionWriter,
    port: u16,
    bodies: BTreeMap<&'a str, &'a Body>,
    /// What was recorded so far, in the plan's order.
    pub(super) records: Vec<RequestRecord>,
    switches: Vec<SwitchRecord>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(run: &'a SessionRun<'a>, writer: &'a SessionWriter, port: u16) -> Self {
        let workload = &run.study.workload;
        let all = workload.warmups.iter().chain(&workload.bodies);
        Self {
            run,
            writer,
            port,
            bodies: all.map(|body| (body.name.as_str(), body)).collect(),
            records: Vec::new(),
            switches: Vec::new(),
        }
    }

    /// Sends everything that the plan says; the text is why it stopped early.
    pub(super) fn all(&mut self) -> Result<Option<String>, Failure> {
        let plan = self.run.archive.plan();
        let steps = plan.steps_of(self.run.planned);
        let mut rest = steps.as_slice();
        for phase in plan.phases() {
            let (now, later) = rest.split_at(phase.requests.len());
            rest = later;
            let broken = match phase.way {
                Way::OneByOne => self.one_by_one(now, steps.len())?,
                Way::Together => self.crowd(&phase.name, now.len(), now)?,
                Way::Workers(n) => self.crowd(&phase.name, n as usize, now)?,
                Way::Timed => self.timed(&phase.name, now)?,
            };
            if broken.is_some() {
                return Ok(broken);
            }
        }
        Ok(None)
    }

    fn one_by_one(&mut self, steps: &[Step], total: usize) -> Result<Option<String>, Failure> {
        for step in steps {
            let text = format!("request {}/{total}: {}", step.index + 1, step.body);
            self.run.progress.step(&text);
            let request = self.request(step)?;
            if let Some(broken) = self.switch(step) {
                return Ok(Some(broken));
            }
            let raw = send(&request, &|| self.run.cancel.is_set());
            let broken = self.record(step, None, &raw)?;
            if broken.is_some() {
                return Ok(broken);
            }
        }
        Ok(None)
    }

    /// Tells the server of a paired study to use the settings of the arm that a request is for, where
    /// that takes a call. The text is why it failed.
    fn switch(&mut self, step: &Step) -> Option<String> {
        let arm = self.run.archive.plan().protocol.arm_of(&step.body)?;
        let found = self.run.study.arms.iter().find(|a| a.name == arm)?;
        let Some(Switch::Call { path, body }) = &found.switch else {
            return None;
        };
        let request = Request {
            port: self.port,
            path,
            body: Some(body.as_bytes()),
            timeout: self.run.study.workload.timeout,
        };
        let raw = send(&request, &|| self.run.cancel.is_set());
        let record = SwitchRecord::of(step.index, arm, path, body, &raw);
        let error = record.error.clone();
        self.switches.push(record);
        error.map(|why| {
            format!(
                "request {}: the switch to arm {arm} failed: {why}",
                step.index
            )
        })
    }

    /// Writes the calls that switched the server; nothing where there were none.
    pub(super) fn write_switches(&self) -> Result<(), Failure> {
        if self.switches.is_empty() {
            return Ok(());
        }
        Ok(self.writer.switches(&self.switches)?)
    }

    /// Workers in order; nothing is written before the last answer of the phase has ended.
    fn crowd(
        &mut self,
        name: &str,
        workers: usize,
        steps: &[Step],
    ) -> Result<Option<String>, Failure> {
        let text = format!("{name}: {} requests, {workers} at once", steps.len());
        self.run.progress.step(&text);
        let requests: Result<Vec<_>, _> = steps.iter().map(|step| self.request(step)).collect();
        let cancel = self.run.cancel;
        let responses = match send_with_workers(&requests?, workers, &|| cancel.is_set()) {
            Ok(responses) => responses,
            Err(e) => {
                let what = format!("{workers} requests cannot be sent at once: {e}");
                return Ok(Some(what));
            }
        };
        let timed = |raw: Option<RawResponse>| raw.map(|raw| (None, raw));
        self.record_all(name, steps, responses.into_iter().map(timed))
    }

    /// Every request at its own time.
    fn timed(&mut self, name: &str, steps: &[Step]) -> Result<Option<String>, Failure> {
        let text = format!("{name}: {} requests on schedule", steps.len());
        self.run.progress.step(&text);
        let requests: Result<Vec<_>, _> = steps.iter().map(|step| self.request(step)).collect();
        let offsets: Vec<u64> = steps.iter().filter_map(|step| step.due_ns).collect();
        let cancel = self.run.cancel;
        match send_on_schedule(&requests?, &offsets, &|| cancel.is_set()) {
            Ok(responses) => {
                let timed = |timed: Option<Timed>| timed.map(|t| (Some(t.due_ns), t.response));
                self.record_all(name, steps, responses.into_iter().map(timed))
            }
            Err(e) => Ok(Some(format!("{name} cannot keep its schedule: {e}"))),
        }
    }

    /// Records what came of a phase, with the times at which it was due; the fault is the first in
    /// the plan's order.
    fn record_all(
        &mut self,
        name: &str,
        steps: &[Step],
        responses: impl Iterator<Item = Option<(Option<u64>, RawResponse)>>,
    ) -> Result<Option<String>, Failure> {
        let (mut broken, mut unsent) = (None, 0);
        for (step, response) in steps.iter().zip(responses) {
            let Some((due_ns, raw)) = response else {
                unsent += 1;
                continue;
            };
            let fault = self.record(step, due_ns, &raw)?;
            broken = broken.or(fault);
        }
        if self.run.cancel.is_set() {
            return Err(Failure::Interrupted);
        }
        let not_all = || format!("{unsent} requests of {name} were not sent");
        Ok(broken.or_else(|| (unsent > 0).then(not_all)))
    }

    fn body(&self, step: &Step) -> Result<&'a Body, Failure> {
        self.bodies.get(step.body.as_str()).copied().ok_or_else(|| {
            let what = format!(
                "the plan names the body {:?}, which the study does not have",
                step.body
            );
            Failure::Archive(crate::archive::ArchiveError::Misuse(what))
        })
    }

    fn request(&self, step: &Step) -> Result<Request<'a>, Failure> {
        let workload = &self.run.study.workload;
        Ok(Request {
            port: self.port,
            path: &workload.path,
            body: Some(&self.body(step)?.bytes),
            timeout: workload.timeout,
        })
    }

    /// Writes what came; the text is what makes it fail the session.
    fn record(
        &mut self,
        step: &Step,
        due_ns: Option<u64>,
        raw: &RawResponse,
    ) -> Result<Option<String>, Failure> {
        let stem = step.body.strip_suffix(".json").unwrap_or(&step.body);
        let header = RequestHeader {
            index: step.index,
            body: step.body.clone(),
            body_sha256: self.body(step)?.sha256.clone(),
            scored: step.scored,
            stream: format!("{:02}-{stem}", step.index),
            phase: step.phase.clone(),
            due_ns,
            gaps: true,
        };
        let record = RequestRecord::assemble(header, raw, self.run.arm.kind);
        self.writer.request(&record, raw)?;
        if self.run.cancel.is_set() {
            return Err(Failure::Interrupted);
        }
        let session = session_folder_name(self.run.planned);
        let detail = json!({ "session": session, "index": step.index, "body": step.body, "error": record.error });
        self.run.archive.event("request", detail)?;
        self.run.progress.request(self.run.planned, &record);
        let fault = self.fault(step, &record);
        self.records.push(record);
        Ok(fault)
    }

    fn fault(&self, step: &Step, record: &RequestRecord) -> Option<String> {
        let about = |what: String| format!("request {} ({}): {what}", step.index, step.body);
        if let Some(error) = &record.error {
            return Some(about(error.clone()));
        }
        let expected = self.run.study.workload.expect_cached;
        step.cache_broken(expected, record.cached_tokens).map(about)
    }

    /// Asks for the prompt ids that the answers did not show, each body once. After the replay, so
    /// in no time that is published; a server that cannot say leaves them absent.
    pub(super) fn ask_prompts(&self) -> Result<(), Failure> {
        let mut unseen: Vec<(&RequestRecord, &Body)> = Vec::new();
        for record in self.records.iter().filter(|r| r.prompt_hash.is_none()) {
            let asked = unseen.iter().any(|(_, body)| body.name == record.body);
            if let Some(body) = self.bodies.get(record.body.as_str()).filter(|_| !asked) {
                unseen.push((record, body));
            }
        }
        if unseen.is_empty() || !self.run.arm.kind.tokenises_on_request() {
            return Ok(());
        }
        self.run.progress.step("asking for prompt tokens");
        let post = |path: &str, body: &[u8]| {
            let request = Request {
                port: self.port,
                path,
                body: Some(body),
                timeout: self.run.study.workload.timeout,
            };
            send(&request, &|| self.run.cancel.is_set())
        };
        let mut prompts = Vec::new();
        for (record, body) in unseen {
            let asked = PromptRecord::ask(record.index, &body.name, &body.bytes, post);
            prompts.push(asked);
            if self.run.cancel.is_set() {
                return Err(Failure::Interrupted);
            }
        }
        Ok(self.writer.prompts(&prompts)?)
    }
}
