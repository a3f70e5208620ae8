//! Telling whoever watches what happens.

use std::path::Path;

use crate::replay::RequestRecord;
use crate::study::{Plan, PlannedSession};

/// Hears the steps of a run. Nothing is called while a request is being timed.
pub trait Progress {
    /// The plan is written in `archive`; these of its sessions were done before.
    fn planned(&self, archive: &Path, plan: &Plan, finished: &[PlannedSession]);
    /// A session starts.
    fn session(&self, session: &PlannedSession);
    /// A step of it, for people.
    fn step(&self, text: &str);
    /// A request of it ended and is recorded.
    fn request(&self, _session: &PlannedSession, _record: &RequestRecord) {}
    /// The session is in the archive.
    fn committed(&self, session: &PlannedSession);
    /// Nothing more comes.
    fn finished(&self);
}

/// Says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn planned(&self, _: &Path, _: &Plan, _: &[PlannedSession]) {}
    fn session(&self, _: &PlannedSession) {}
    fn step(&self, _: &str) {}
    fn committed(&self, _: &PlannedSession) {}
    fn finished(&self) {}
}

/// Tells several.
pub struct All<'a>(pub &'a [&'a dyn Progress]);

impl Progress for All<'_> {
    fn planned(&self, archive: &Path, plan: &Plan, finished: &[PlannedSession]) {
        self.0
            .iter()
            .for_each(|p| p.planned(archive, plan, finished));
    }
    fn session(&self, session: &PlannedSession) {
        self.0.iter().for_each(|p| p.session(session));
    }
    fn step(&self, text: &str) {
        self.0.iter().for_each(|p| p.step(text));
    }
    fn request(&self, session: &PlannedSession, record: &RequestRecord) {
        self.0.iter().for_each(|p| p.request(session, record));
    }
    fn committed(&self, session: &PlannedSession) {
        self.0.iter().for_each(|p| p.committed(session));
    }
    fn finished(&self) {
        self.0.iter().for_each(|p| p.finished());
    }
}
