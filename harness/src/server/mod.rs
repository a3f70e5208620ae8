//! Launching servers: one adapter a kind.

mod facts;
mod kind;

pub use facts::{FileFact, LaunchFacts, ProcessUsage, StopFacts, StopMode};
pub use kind::ServerKind;
