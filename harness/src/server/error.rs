//! Why a server did not come up.

use std::io;
use std::path::PathBuf;

/// All of these end a study with exit code 96.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Nothing to launch.
    #[error("arm {arm:?} cannot be launched: {hint}")]
    NoProgram {
        /// Arm name.
        arm: String,
        /// What to do about it.
        hint: String,
    },
    /// The system refused.
    #[error("cannot start {program}: {source}")]
    Spawn {
        /// What was to be started.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file of the server cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error(
        "the server of arm {arm:?} ended before it was ready ({how}); the end of its log:\n{log_tail}"
    )]
    Died {
        /// Arm name.
        arm: String,
        /// Exit code or signal.
        how: String,
        /// Last lines that it printed.
        log_tail: String,
    },
    /// It runs but does not say that it is ready.
    #[error(
        "the server of arm {arm:?} was not ready after {waited_s:.0} s ({last}); the end of its log:\n{log_tail}"
    )]
    NotReady {
        /// Arm name.
        arm: String,
        /// How long it was given.
        waited_s: f64,
        /// What its health route said last.
        last: String,
        /// Last lines that it printed.
        log_tail: String,
    },
    /// Interrupted.
    #[error("interrupted while the server of arm {arm:?} was starting")]
    Cancelled {
        /// Arm name.
        arm: String,
    },
}

/// The last lines of a log, at most 20 and 4000 bytes.
pub fn log_tail(log: &[u8]) -> String {
    let tail = &log[log.len().saturating_sub(4000)..];
    let text = String::from_utf8_lossy(tail);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(20)..].join("\n");
    if last.trim().is_empty() {
        "(it printed nothing)".to_owned()
    } else {
        last
    }
}
