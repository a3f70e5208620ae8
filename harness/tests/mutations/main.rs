//! At least 1,000 seeded mutations of real archives: the audit catches every one, names the file and
//! the field, and says nothing of archives that nobody touched.
//!
//! What no audit can see, because it is only written down (a machine's description, raw times that
//! were all made anew), is tested against a signature and an index.

#![expect(
    clippy::semicolon_if_nothing_returned,
    reason = "edits of one field read as one line"
)]

#[path = "../common/mod.rs"]
mod common;

mod forge;
mod plain;
mod resealed;
mod sample;
mod trusted;
