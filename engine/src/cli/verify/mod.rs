//! `verify`: is the file sound, and do all ways to compute with it agree?

mod against;
mod command;
mod fingerprint;
mod levels;
mod progress;
mod sound;
mod table;

pub use command::{VerifyArgs, run};
