//! Re-derives everything from raw bytes and compares. Trusts nothing.

mod check;
mod files;
mod plan;
mod raw;
mod published;

pub use check::{Audit, Mismatch, audit};
