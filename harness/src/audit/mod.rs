//! Re-derives everything from raw bytes and compares. Trusts nothing.

mod check;
mod files;
mod plan;
mod published;
mod raw;

pub use check::{Audit, Mismatch, audit};
