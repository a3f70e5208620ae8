//! Bringing a real llama.cpp server to this machine.

mod cache;
mod error;
mod install;
mod probe;
mod python;
mod record;

pub use cache::{cache_folder, workspace_root};
pub use error::SetupError;
pub use install::{Choice, active, ensure};
pub use python::{check_venv, find_python, is_executable, on_path};
pub use record::{BuildKind, LlamaCpp};
