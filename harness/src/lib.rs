//! `palindrome`: mirrored, auditable studies of LLM servers.
//!
//! Data flows one way: a study file becomes a plan; sessions launch servers and replay saved
//! bodies; the archive keeps raw facts only; `derive` turns raw facts into labelled figures;
//! `report` and `audit` consume those.

pub mod archive;
pub mod audit;
pub mod build;
pub mod claims;
pub mod cli;
pub mod demo;
pub mod derive;
pub mod gate;
pub mod history;
pub mod host;
pub mod log;
pub mod replay;
pub mod report;
pub mod server;
pub mod session;
pub mod setup;
pub mod shelf;
pub mod simulate;
pub mod stats;
pub mod study;
pub mod workload;
