//! Writes a report beside an archive, never into it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::content::{Source, page};
use super::{chart, html, markdown};
use crate::archive::{Archive, ArchiveError, check_seal, hash_file, sha256_hex};
use crate::derive::{by_arm, derive};

/// Name of the chart's file.
const CHART: &str = "sessions.svg";

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The archive cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}; give another folder with `--out`")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The chart cannot be drawn.
    #[error("cannot draw the chart: {0}")]
    Chart(String),
    /// The report would land in the evidence.
    #[error("reports cannot be written into the archive {0}: choose another folder")]
    InsideArchive(PathBuf),
}

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// `index.html`, self-contained.
    pub html: PathBuf,
    /// `report.md`.
    pub markdown: PathBuf,
    /// `sessions.svg`.
    pub chart: PathBuf,
}

/// The first file that is not the one that was sealed, in words.
fn changed(archive: &Archive) -> Result<Option<String>, ReportError> {
    for subject in archive.manifest()?.iter().flat_map(|m| &m.subject) {
        let path = archive.path().join(&subject.name);
        let found = match hash_file(&path) {
            Ok(found) => Some(found),
            Err(source) if source.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(ReportError::Io { path, source }),
        };
        if found.as_ref() != subject.digest.get("sha256") {
            return Ok(Some(format!(
                "{} is not the file that was sealed: `palindrome audit` says what differs",
                subject.name
            )));
        }
    }
    Ok(None)
}

/// Writes `<reports>/<archive name>/{index.html, report.md, sessions.svg}`. Figures are the published
/// ones; of an unsealed archive they are derived now, and the report says that it is not sealed.
pub fn write(archive: &Archive, reports: &Path) -> Result<Written, ReportError> {
    let facts = archive.facts()?;
    let figures = match archive.figures()? {
        Some(published) => published,
        None => derive(&facts),
    };
    let manifest = archive.manifest()?;
    let files = manifest.iter().flat_map(|m| &m.subject);
    let apart = by_arm(&facts);
    let source = Source {
        archive_name: &archive.name(),
        facts: &apart,
        figures: &figures,
        seal_problem: match check_seal(archive.path())? {
            None => changed(archive)?,
            problem => problem,
        },
        manifest_sha256: manifest
            .is_some()
            .then(|| archive.read("manifest.json"))
            .transpose()?
            .map(|b| sha256_hex(&b)),
        files: files
            .map(|s| {
                (
                    s.name.clone(),
                    s.digest.get("sha256").cloned().unwrap_or_default(),
                )
            })
            .collect(),
    };
    let page = page(&source);
    let svg = chart::sessions_svg(&apart, &figures)?;

    let folder = reports.join(archive.name());
    fs::create_dir_all(&folder).map_err(|source| ReportError::Io {
        path: folder.clone(),
        source,
    })?;
    let real = folder.canonicalize().map_err(|source| ReportError::Io {
        path: folder.clone(),
        source,
    })?;
    if real.starts_with(archive.path()) {
        // Only the folder just made, and only if empty, goes away again.
        let _ = fs::remove_dir(&folder);
        return Err(ReportError::InsideArchive(archive.path().to_path_buf()));
    }
    let place = |name: &str, text: &str| {
        let path = folder.join(name);
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(source) => Err(ReportError::Io { path, source }),
        }
    };
    Ok(Written {
        chart: place(CHART, &svg)?,
        html: place("index.html", &html::render(&page, &svg))?,
        markdown: place("report.md", &markdown::render(&page, CHART))?,
    })
}
