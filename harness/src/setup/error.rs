//! What can go wrong while a llama.cpp server is brought here.

use std::path::PathBuf;

/// Why there is no server. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// No usable Python.
    #[error(
        "no Python 3.10 or later was found on PATH: install python3 (Debian: `apt install python3 python3-venv`)"
    )]
    NoPython,
    /// Python without venv or ensurepip.
    #[error(
        "{python} cannot make virtual environments ({detail}): install its venv and pip (Debian: `apt install python3-venv python3-pip`)"
    )]
    NoVenv {
        /// The interpreter.
        python: PathBuf,
        /// What it said.
        detail: String,
    },
    /// pip failed.
    #[error("pip could not install {what}; the end of {}:\n{tail}", log.display())]
    Pip {
        /// What was asked for.
        what: String,
        /// pip's whole output.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// A given llama-server is not there or not executable.
    #[error("no executable llama-server at {0}: give the path of the program itself")]
    NoServer(PathBuf),
    /// A program that should describe itself does not.
    #[error("{program} does not describe itself as a llama.cpp server would: {detail}")]
    Probe {
        /// What was run.
        program: PathBuf,
        /// What it said.
        detail: String,
    },
    /// Nothing has been set up yet.
    #[error("no llama.cpp server is set up: run `palindrome setup llama-cpp`")]
    NotSetUp,
    /// The record or the files that it names are damaged.
    #[error(
        "the llama.cpp server set up before is damaged ({0}): run `palindrome setup llama-cpp` again"
    )]
    Damaged(String),
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl SetupError {
    pub(super) fn io(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
