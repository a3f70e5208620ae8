//! Workloads: folders of request bodies, recorded from real clients, imported from public formats,
//! and checked before a study replays them.

pub mod check;
mod folder;
pub mod import;
mod message;
pub mod record;
mod redact;
mod sampling;
mod starter;

pub use folder::{AnswerLine, Folder, IndexHead, IndexLine, SCHEMA, Saved, WorkloadError};
pub use redact::{Redacted, redact_body, redact_target};
pub use sampling::Sampling;
pub use starter::{starter, write_starter};
