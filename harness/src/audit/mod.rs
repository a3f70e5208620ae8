//! Re-derives everything from raw bytes and compares. Trusts nothing.

mod check;
mod evidence;
mod files;
mod launches;
mod plan;
mod published;
mod raw;
mod words;

pub use check::{Audit, Mismatch, audit, audit_with};
