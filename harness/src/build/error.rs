//! Why an arm could not be built.

use std::io;
use std::path::{Path, PathBuf};

/// None of these leaves an archive: arms are built before there is one.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A revision is asked for where there is no repository.
    #[error(
        "arm {arm:?}: a revision is built in a git repository, and {folder} is in none ({said}); give `repo`"
    )]
    NoRepository {
        /// Arm name.
        arm: String,
        /// Where one was looked for.
        folder: PathBuf,
        /// git's words.
        said: String,
    },
    /// The revision is none.
    #[error("arm {arm:?}: rev = {rev:?} names no commit of {repo} ({said})")]
    NoCommit {
        /// Arm name.
        arm: String,
        /// As written.
        rev: String,
        /// The repository.
        repo: PathBuf,
        /// git's words.
        said: String,
    },
    /// One build would replace the other.
    #[error(
        "arms {first:?} and {second:?} are built by different commands in the same folder and launch the same program, \
         so the second build would replace the first: give each a `rev` (\"HEAD\" is one), or let them build different \
         files"
    )]
    SameFolder {
        /// Arm name.
        first: String,
        /// Arm name.
        second: String,
    },
    /// The command failed.
    #[error(transparent)]
    Failed(Box<FailedBuild>),
    /// It cannot even be started.
    #[error("arm {arm:?} could not be built: `{command}` does not start in {tree}: {source}")]
    NotStarted {
        /// Arm name.
        arm: String,
        /// The build's command.
        command: String,
        /// Where it should have run.
        tree: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// It went well, and what is to be launched is not there.
    #[error(
        "arm {arm:?} is built, but there is no {program}: `program` is relative to the folder that it is built in; the \
         build's log is {log}"
    )]
    NoProgram {
        /// Arm name.
        arm: String,
        /// Where it was looked for.
        program: PathBuf,
        /// What the build printed.
        log: PathBuf,
    },
    /// git refused.
    #[error("arm {arm:?} could not be built: git cannot make a worktree of {repo}: {said}")]
    Worktree {
        /// Arm name.
        arm: String,
        /// The repository.
        repo: PathBuf,
        /// git's words.
        said: String,
    },
    /// The file system refused.
    #[error("arms could not be built: cannot {action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Interrupted.
    #[error("interrupted while arm {arm:?} was being built; nothing was measured")]
    Cancelled {
        /// Arm name.
        arm: String,
    },
}

impl BuildError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// A build's command that failed.
#[derive(Debug, thiserror::Error)]
#[error(
    "arm {arm:?} could not be built: `{command}` in {tree} ended with {how}; its log is {log}, and ends:\n{tail}"
)]
pub struct FailedBuild {
    /// Arm name.
    pub arm: String,
    /// The build's command.
    pub command: String,
    /// Where it ran.
    pub tree: PathBuf,
    /// Exit code or signal.
    pub how: String,
    /// Everything that it printed.
    pub log: PathBuf,
    /// The last lines of that.
    pub tail: String,
}
