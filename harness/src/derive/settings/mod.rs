//! What a server really did, read back, next to what was expected of it.

mod check;
mod engine;
mod found;
mod llama_cpp;
mod process;
mod setting;
mod silent;
mod words;

pub use check::{Asked, settings};
pub(super) use setting::session_settings;
pub use setting::{By, SessionSettings, Setting, Verdicted};
pub use silent::unused_instructions;
pub(crate) use words::shown;
pub(super) use words::warnings;
pub use words::{Terms, broken_terms, gists};
