//! From errors to exit codes: one place, no catch-all.

use std::fmt::Display;

use super::Exit;
use crate::archive::{ArchiveError, KeyError, SignError};
use crate::report::ReportError;
use crate::session::RunError;
use crate::setup::SetupError;
use crate::shelf::{IndexError, PackError};
use crate::study::StudyError;

/// A command that did not do what it was asked to, in words and as a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// For people; may have several lines.
    pub message: String,
}

impl Failure {
    /// A failure in words.
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        let exit = match &error {
            SetupError::NoServer(_) => Exit::Usage,
            SetupError::NoPython
            | SetupError::NoVenv { .. }
            | SetupError::Pip { .. }
            | SetupError::Probe { .. }
            | SetupError::NotSetUp
            | SetupError::Damaged(_)
            | SetupError::Io { .. } => Exit::Server,
        };
        Self::new(exit, error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let mut message = error.to_string();
        if let Some(archive) = error.resumable() {
            message = format!(
                "{message}\nto go on: palindrome run STUDY.toml --resume {}",
                archive.display()
            );
        }
        Self {
            exit: error.exit(),
            message,
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let exit = match &error {
            ArchiveError::NotAnArchive { .. } | ArchiveError::Sealed(_) => Exit::Usage,
            _ => Exit::Audit,
        };
        Self::new(exit, error)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

impl From<SignError> for Failure {
    fn from(error: SignError) -> Self {
        match error {
            SignError::Key(_) | SignError::NotSealed(_) => Self::new(Exit::Usage, error),
            SignError::Write(error) => error.into(),
        }
    }
}

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        match error {
            PackError::Archive(error) => error.into(),
            PackError::Io { .. } | PackError::Exists(_) => Self::new(Exit::Usage, error),
            PackError::NotSealed { .. } | PackError::Refused { .. } => {
                Self::new(Exit::Audit, error)
            }
        }
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Archive(error) => error.into(),
            IndexError::Io { .. } | IndexError::NotKept(_) => Self::new(Exit::Usage, error),
            IndexError::Malformed(_) | IndexError::Broken(_) | IndexError::NotSealed { .. } => {
                Self::new(Exit::Audit, error)
            }
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Archive(error) => error.into(),
            ReportError::InsideArchive(_) | ReportError::Io { .. } => Self::new(Exit::Usage, error),
            ReportError::Chart(_) => Self::new(Exit::Incomplete, error),
        }
    }
}
