//! How long sessions took in the newest earlier archive of a study.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::archive::Archive;
use crate::derive::SeenSessions;
use crate::study::Plan;

/// Looks through a folder of archives for the newest one with sessions of this study: the same name,
/// arms and requests.
pub(super) fn seen(archives: &Path, plan: &Plan) -> Option<SeenSessions> {
    let entries = fs::read_dir(archives).ok()?;
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|folder| {
            !folder
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with('.'))
        })
        .collect();
    // Names begin with the time.
    folders.sort();
    folders
        .iter()
        .rev()
        .find_map(|folder| of_archive(folder, plan))
}

fn of_archive(folder: &Path, plan: &Plan) -> Option<SeenSessions> {
    // What cannot be read is no source; `audit` says what is wrong with it.
    let archive = Archive::open(folder).ok()?;
    let other = archive.plan();
    let same = other.study == plan.study
        && other.bodies == plan.bodies
        && other.warmups == plan.warmups
        && other.protocol == plan.protocol;
    if !same {
        return None;
    }
    let mut seconds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for planned in &other.sessions {
        if let Ok(end) = archive.end(planned) {
            let lasted = end.ended_ns.saturating_sub(end.started_ns) as f64 / 1e9;
            seconds.entry(planned.arm.clone()).or_default().push(lasted);
        }
    }
    (!seconds.is_empty()).then(|| SeenSessions {
        archive: folder.display().to_string(),
        same_file: other.study_sha256 == plan.study_sha256,
        seconds,
    })
}
