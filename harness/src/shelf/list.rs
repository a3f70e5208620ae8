//! A folder of archives, one line each.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::archive::{Archive, ArchiveError, check_seal, session_folder_name};

/// How far an archive is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum State {
    /// Sealed, and the seal is that of its manifest.
    Sealed,
    /// Sealed, but the seal does not hold.
    Broken {
        /// What does not hold.
        reason: String,
    },
    /// A study that was not finished, or not sealed.
    Unfinished {
        /// Sessions that are recorded.
        recorded: usize,
        /// Sessions of the plan.
        planned: usize,
    },
    /// A folder with a plan that cannot be read.
    Unreadable {
        /// Why not.
        reason: String,
    },
}

impl State {
    /// Of an archive. Looks at the seal and the manifest only: an audit looks at everything.
    pub fn of(archive: &Archive) -> Result<Self, ArchiveError> {
        if archive.is_sealed() {
            return Ok(match check_seal(archive.path())? {
                None => Self::Sealed,
                Some(reason) => Self::Broken { reason },
            });
        }
        let sessions = archive.path().join("sessions");
        let planned = &archive.plan().sessions;
        let recorded = planned.iter().map(session_folder_name);
        Ok(Self::Unfinished {
            recorded: recorded.filter(|name| sessions.join(name).is_dir()).count(),
            planned: planned.len(),
        })
    }

    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Sealed => "sealed".into(),
            Self::Broken { reason } => format!("BROKEN: {reason}"),
            Self::Unfinished { recorded, planned } => {
                format!("unfinished: {recorded} of {planned} sessions")
            }
            Self::Unreadable { reason } => format!("UNREADABLE: {reason}"),
        }
    }
}

/// One archive of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The folder's name.
    pub id: String,
    /// When the study started, UTC; absent where `host.json` cannot be read.
    pub utc: Option<String>,
    /// The study's name.
    pub study: Option<String>,
    /// Its arms, in their order.
    pub arms: Vec<String>,
    /// Version of the archive's format.
    pub format: Option<String>,
    /// How far it is.
    #[serde(flatten)]
    pub state: State,
    /// The outcome in one sentence, as published.
    pub verdict: Option<String>,
}

impl Listed {
    fn of(id: String, path: &Path) -> Self {
        let archive = match Archive::open(path) {
            Ok(archive) => archive,
            Err(error) => {
                return Self {
                    id,
                    utc: None,
                    study: None,
                    arms: Vec::new(),
                    format: None,
                    state: State::Unreadable {
                        reason: error.to_string(),
                    },
                    verdict: None,
                };
            }
        };
        let unreadable = |error: &ArchiveError| State::Unreadable {
            reason: error.to_string(),
        };
        let mut state = State::of(&archive).unwrap_or_else(|error| unreadable(&error));
        let verdict = match archive.figures() {
            Ok(figures) => figures.map(|f| f.verdict().sentence.clone()),
            Err(error) => {
                state = unreadable(&error);
                None
            }
        };
        let plan = archive.plan();
        Self {
            id,
            utc: archive.host().ok().map(|host| host.utc),
            study: Some(plan.study.clone()),
            arms: plan.arms.clone(),
            format: Some(plan.schema.clone()),
            state,
            verdict,
        }
    }
}

/// Every archive of a folder, by name; folders without a plan are none.
pub fn list(folder: &Path) -> Result<Vec<Listed>, ArchiveError> {
    let io = |source| ArchiveError::Io {
        action: "list",
        path: folder.into(),
        source,
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.join("plan.json").is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        Listed::of(name.to_string_lossy().into_owned(), path)
    };
    // What a run or an unpacking is writing has a hidden name.
    let listed = paths.iter().map(named);
    Ok(listed.filter(|l| !l.id.starts_with('.')).collect())
}
