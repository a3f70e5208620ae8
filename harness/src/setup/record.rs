//! Which llama.cpp server a study runs, as `palindrome setup llama-cpp` recorded it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How the server came to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuildKind {
    /// The prebuilt Python wheel: ready in seconds, not compiled for this host.
    Wheel,
    /// Compiled on this host, with this host's instruction set.
    Native,
    /// A `llama-server` that was here already; how it was built is not known.
    Path,
}

/// A llama.cpp server that can be launched: `program args_prefix... <llama-server's own flags>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlamaCpp {
    /// `major.minor` of this record.
    pub schema: String,
    /// How it came here.
    pub kind: BuildKind,
    /// What to execute: `llama-server`, or the virtual environment's Python.
    pub program: PathBuf,
    /// Arguments before llama-server's own flags (for the wheel: the launcher script).
    pub args_prefix: Vec<String>,
    /// Version as the build says it.
    pub version: String,
    /// CPU features as the build reports them (`AVX2`, `FMA`, ...).
    pub features: Vec<String>,
    /// The binary that holds the server's code (for the wheel: its extension module).
    pub binary: PathBuf,
    /// sha256 of `binary`, lowercase hex.
    pub binary_sha256: String,
    /// Whether it was compiled for this host's instruction set. A report over a build that was
    /// not says so in its first lines.
    pub built_for_host: bool,
}
