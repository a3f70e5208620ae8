//! The audit: what is checked, in which order, and its outcome.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::evidence::Evidence;
use super::{files, launches, plan, published, raw};
use crate::archive::{Archive, ArchiveError, PublicKey, Signed};

/// One thing that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// File inside the archive.
    pub file: String,
    /// Field, line or figure; empty for the file as a whole.
    pub field: String,
    /// What was found and what was expected.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "{}: {}", self.file, self.what)
        } else {
            write!(f, "{} {}: {}", self.file, self.field, self.what)
        }
    }
}

/// Outcome of an audit: how much was checked and what does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Files whose sha256 was compared with the manifest.
    pub files: usize,
    /// Sessions compared with the plan.
    pub sessions: usize,
    /// Raw streams interpreted again.
    pub streams: usize,
    /// Request records compared field by field.
    pub requests: usize,
    /// Hashes of tokens and text computed again.
    pub token_hashes: usize,
    /// Figures derived again and compared to the last bit.
    pub figures: usize,
    /// Figures that rest on what could not be read, and so were not compared.
    pub figures_not_compared: usize,
    /// Figures that newer versions than the archive's add; it does not have them.
    pub figures_newer: usize,
    /// What the signature shows; absent where the archive is not signed.
    pub signature: Option<Signed>,
    /// Events whose chain was followed.
    pub events: usize,
    /// What does not hold; empty when everything does.
    pub mismatches: Vec<Mismatch>,
}

impl Audit {
    /// Whether everything holds.
    pub fn passed(&self) -> bool {
        self.mismatches.is_empty()
    }

    pub(super) fn fail(
        &mut self,
        file: impl Into<String>,
        field: impl Into<String>,
        what: impl Into<String>,
    ) {
        let mismatch = Mismatch {
            file: file.into(),
            field: field.into(),
            what: what.into(),
        };
        // Several checks may read the same broken file.
        if !self.mismatches.contains(&mismatch) {
            self.mismatches.push(mismatch);
        }
    }

    /// Takes a reader's error as a mismatch of the file that it is about, by default `file`.
    pub(super) fn fail_with(&mut self, archive: &Archive, file: &str, error: &ArchiveError) {
        match error {
            ArchiveError::Io {
                action,
                path,
                source,
            } => {
                let inside = path.strip_prefix(archive.path()).ok();
                let file = inside.map_or_else(|| file.into(), |p| p.to_string_lossy().into_owned());
                self.fail(file, "", format!("cannot {action} it: {source}"));
            }
            ArchiveError::Malformed { file, line, reason } => {
                let line = line.map(|n| format!("line {n}")).unwrap_or_default();
                self.fail(file, line, reason);
            }
            ArchiveError::NewerSchema { .. }
            | ArchiveError::Sealed(_)
            | ArchiveError::NotAnArchive { .. }
            | ArchiveError::Misuse(_) => self.fail(file, "", error.to_string()),
        }
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mismatch in &self.mismatches {
            writeln!(f, "MISMATCH {mismatch}")?;
        }
        writeln!(
            f,
            "checked {} files, {} sessions, {} raw streams, {} requests, {} token hashes, {} figures, {} events",
            self.files,
            self.sessions,
            self.streams,
            self.requests,
            self.token_hashes,
            self.figures,
            self.events
        )?;
        if self.figures_not_compared > 0 {
            writeln!(
                f,
                "{} figures were not compared: they rest on what cannot be read",
                self.figures_not_compared
            )?;
        }
        if let Some(signed) = &self.signature {
            let key = &signed.key;
            match (signed.holds, signed.vouched) {
                (Some(true), true) => writeln!(f, "signed by the key given ({key})")?,
                (Some(true), false) => writeln!(
                    f,
                    "signed by key {key}; that it is the one you know is checked with `--key`"
                )?,
                _ => writeln!(f, "signed by key {key}; not checked: give it with `--key`")?,
            }
        }
        if self.figures_newer > 0 {
            writeln!(
                f,
                "{} figures that this newer version adds are not in the archive",
                self.figures_newer
            )?;
        }
        match self.mismatches.len() {
            0 => writeln!(f, "everything holds"),
            n => writeln!(f, "{n} mismatch(es)"),
        }
    }
}

/// Audits an archive folder. The error is for what is no archive at all (no readable folder or
/// plan); everything else, unreadable files included, is a mismatch.
pub fn audit(path: &Path) -> Result<Audit, ArchiveError> {
    audit_with(path, None)
}

/// The same, of an archive that must be signed by a key if one is given.
pub fn audit_with(path: &Path, key: Option<&PublicKey>) -> Result<Audit, ArchiveError> {
    let archive = Archive::open(path)?;
    let mut audit = Audit::default();
    let unfinished = files::is_unfinished(&archive);
    if !unfinished {
        files::check(&archive, key, &mut audit);
    }
    files::sessions(&archive, &mut audit);
    let mut evidence = Evidence::read(&archive, &mut audit);
    if unfinished {
        // One finding, not one for each thing that comes last; what is there is checked.
        let (recorded, planned) = (
            evidence.keep_recorded(&archive),
            archive.plan().sessions.len(),
        );
        let path = archive.path().display();
        let what = format!(
            "is missing: the study is unfinished, {recorded} of {planned} planned sessions are recorded; to go on: \
             palindrome run STUDY.toml --resume {path}"
        );
        audit.fail("SEAL", "", what);
    }
    plan::check(&archive, &evidence, &mut audit);
    launches::check(&evidence, &mut audit);
    raw::check(&archive, &mut evidence, &mut audit);
    if !unfinished {
        published::check(&archive, &evidence, &mut audit);
    }
    Ok(audit)
}
