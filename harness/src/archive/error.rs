//! What can go wrong with an archive.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of the archive's writer and reader.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file system refused; a full disk arrives here.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file does not hold what the format says.
    #[error("{file}{}: {reason}", .line.map(|l| format!(" line {l}")).unwrap_or_default())]
    Malformed {
        /// Path inside the archive.
        file: String,
        /// Line from 1, for JSON lines.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// Written by a later program.
    #[error(
        "{file} is of archive format {found}; this program reads up to major version 1 (format {}): use a newer palindrome",
        super::SCHEMA
    )]
    NewerSchema {
        /// Path inside the archive.
        file: String,
        /// The version it states.
        found: String,
    },
    /// Sealed archives are never written again.
    #[error("{0} is sealed; a correction is a new archive that names this one")]
    Sealed(PathBuf),
    /// No archive there.
    #[error("{path} is no archive: {reason}")]
    NotAnArchive {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The caller broke the order of writing.
    #[error("archive misuse: {0}")]
    Misuse(String),
}

impl ArchiveError {
    /// An I/O error with what was attempted.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// A malformed file; `line` counts from 1.
    pub(super) fn malformed(file: &str, line: Option<usize>, reason: impl Into<String>) -> Self {
        Self::Malformed {
            file: file.into(),
            line,
            reason: reason.into(),
        }
    }

    /// True when the disk (or quota) is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}
