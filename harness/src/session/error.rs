//! Why a study stopped before its end.

use std::path::PathBuf;

use crate::archive::ArchiveError;
use crate::build::BuildError;
use crate::cli::Exit;
use crate::host::{GuardError, LockError};
use crate::server::LaunchError;

/// An unfinished study. Where `archive` is given, it holds every session finished so far and can
/// be resumed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another study holds the machine.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// An arm could not be built; there is no archive, or the one given goes on later.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The machine is not fit.
    #[error("session {session}: {source}")]
    Guard {
        /// Folder name of the session.
        session: String,
        /// What was out of bounds.
        source: GuardError,
        /// What to resume.
        archive: PathBuf,
    },
    /// A server did not come up.
    #[error("session {session}: {source}")]
    Launch {
        /// Folder name of the session.
        session: String,
        /// Why not.
        source: Box<LaunchError>,
        /// What to resume.
        archive: PathBuf,
    },
    /// A server failed while it was measured.
    #[error("session {session}: {reason}")]
    Session {
        /// Folder name of the session.
        session: String,
        /// What happened, with the end of the server's log.
        reason: String,
        /// What to resume.
        archive: PathBuf,
    },
    /// The archive cannot be written; a full disk arrives here.
    #[error("the archive cannot be written: {source}")]
    Archive {
        /// Why not.
        source: ArchiveError,
        /// What to resume, if it was created.
        archive: Option<PathBuf>,
    },
    /// `--resume` was given an archive of something else.
    #[error("{archive} cannot go on with this study: {reason}")]
    OtherStudy {
        /// The archive.
        archive: PathBuf,
        /// What differs.
        reason: String,
    },
    /// Interrupted; the session under way is discarded.
    #[error("interrupted; finished sessions are kept in {archive}")]
    Interrupted {
        /// What to resume.
        archive: PathBuf,
    },
}

/// The exit code of an arm that could not be built.
fn build_exit(error: &BuildError) -> Exit {
    match error {
        BuildError::Cancelled { .. } => Exit::Incomplete,
        BuildError::NoRepository { .. }
        | BuildError::NoCommit { .. }
        | BuildError::SameFolder { .. } => Exit::Usage,
        BuildError::Failed(_)
        | BuildError::NotStarted { .. }
        | BuildError::NoProgram { .. }
        | BuildError::Worktree { .. }
        | BuildError::Io { .. } => Exit::Server,
    }
}

impl RunError {
    /// The program's exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Lock(LockError::Cancelled)
            | Self::Interrupted { .. }
            | Self::Archive {
                archive: Some(_), ..
            } => Exit::Incomplete,
            Self::Build(error) => build_exit(error),
            Self::Lock(_) | Self::Guard { .. } => Exit::HostGuard,
            Self::Launch { .. } | Self::Session { .. } => Exit::Server,
            Self::Archive { archive: None, .. } => Exit::NothingMeasured,
            Self::OtherStudy { .. } => Exit::Usage,
        }
    }

    /// The archive that `--resume` can go on with.
    pub fn resumable(&self) -> Option<&PathBuf> {
        match self {
            Self::Guard { archive, .. }
            | Self::Launch { archive, .. }
            | Self::Session { archive, .. }
            | Self::Interrupted { archive } => Some(archive),
            Self::Archive { archive, .. } => archive.as_ref(),
            Self::Lock(_) | Self::Build(_) | Self::OtherStudy { .. } => None,
        }
    }
}
