//! The bodies of folders, files and studies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::{Folder, WorkloadError};
use super::body::BodyFacts;
use crate::study::{StudyError, StudyFile};

/// Bodies to be judged together.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Those that could be read.
    pub bodies: Vec<BodyFacts>,
    /// Those that could not: name, and why.
    pub unreadable: Vec<(String, String)>,
    /// What is odd about a folder.
    pub notes: Vec<String>,
    /// Where a study posts its bodies; absent outside a study.
    pub path: Option<String>,
    /// Context of each arm of a study that states one: name and tokens.
    pub contexts: Vec<(String, u32)>,
}

/// Why nothing was gathered.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// A folder or file.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A study file.
    #[error(transparent)]
    Study(#[from] StudyError),
}

/// Reads what was named: folders, bodies, and studies (`.toml`).
pub fn gather(named: &[PathBuf]) -> Result<Gathered, GatherError> {
    let mut gathered = Gathered::default();
    for path in named {
        if path.is_dir() {
            gathered.folder(path)?;
        } else if path.extension().is_some_and(|e| e == "toml") {
            gathered.study(path)?;
        } else {
            gathered.body(&path.display().to_string(), path, Vec::new())?;
        }
    }
    if gathered.bodies.is_empty() && gathered.unreadable.is_empty() {
        let names: Vec<String> = named.iter().map(|p| p.display().to_string()).collect();
        let message = format!(
            "{}: no bodies; give a folder with .json files, bodies, or a study file (.toml)",
            names.join(", ")
        );
        return Err(WorkloadError::Wrong(message).into());
    }
    Ok(gathered)
}

impl Gathered {
    fn folder(&mut self, path: &Path) -> Result<(), GatherError> {
        let folder = Folder::read(path)?;
        for note in &folder.notes {
            self.notes.push(format!("{}: {note}", path.display()));
        }
        for line in &folder.left_out {
            let why = line.left_out.as_deref().unwrap_or("not kept");
            self.notes.push(format!(
                "{}: request {} was not kept: {why}",
                path.display(),
                line.number
            ));
        }
        for body in folder.bodies {
            let file = path.join(&body.file);
            let redacted = body.line.map(|line| line.redacted).unwrap_or_default();
            self.body(&file.display().to_string(), &file, redacted)?;
        }
        Ok(())
    }

    fn study(&mut self, path: &Path) -> Result<(), GatherError> {
        let text = fs::read_to_string(path).map_err(|e| StudyError::Unreadable {
            path: path.to_path_buf(),
            reason: e.to_string(),
        })?;
        let study = StudyFile::parse(path, &text)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let workload = &study.workload;
        let mut seen = BTreeSet::new();
        for name in workload.warmups.iter().chain(workload.bodies.as_ref()) {
            let file = folder.join(name.as_ref());
            // A body that stands twice is one body.
            if seen.insert(file.clone()) {
                self.body(&file.display().to_string(), &file, Vec::new())?;
            }
        }
        self.path = Some(workload.path.as_ref().clone());
        for arm in &study.arms {
            if let Some(ctx) = arm.ctx.or(study.base.ctx) {
                self.contexts.push((arm.name.as_ref().clone(), ctx));
            }
        }
        Ok(())
    }

    fn body(&mut self, name: &str, path: &Path, redacted: Vec<String>) -> Result<(), GatherError> {
        let raw = fs::read(path).map_err(WorkloadError::io("read", path))?;
        match BodyFacts::read(name, raw) {
            Ok(facts) => self.bodies.push(BodyFacts { redacted, ..facts }),
            Err(why) => self.unreadable.push((name.to_owned(), why)),
        }
        Ok(())
    }
}
