//! Launching servers: one adapter a kind.

mod adapters;
mod error;
mod facts;
mod guard;
mod hashes;
mod inner;
mod kind;
mod launcher;
pub mod mock;
mod process;
mod readback;
mod redact;

pub use error::{LaunchError, log_tail};
pub use facts::{FileFact, LaunchFacts, ProcessUsage, StopFacts, StopMode};
pub use hashes::HashCache;
pub use inner::inner_command;
pub use kind::ServerKind;
pub use launcher::{CommandSpec, LaunchContext, Launcher, Programs, launcher};
pub use process::{ServerProcess, describe, free_port};
pub use readback::{ClockPair, Readback, RouteAnswer};
pub(crate) use redact::{Redaction, is_literal_secret, may_be, redact, redact_args};
