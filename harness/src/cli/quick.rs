//! `palindrome run -- A-COMMAND --- B-COMMAND`: the study of two commands.

use std::fs;
use std::path::{Path, PathBuf};

use super::args::{QuickArgs, RunArgs};
use super::{Exit, Failure};
use crate::archive::{replace_file, sha256_hex};
use crate::setup::cache_folder;
use crate::study::{QuickStudy, SAMPLE_BODIES, Study, StudyError};

/// The study that is asked for: of a file, or of commands.
pub(super) fn study(args: &RunArgs) -> Result<Study, Failure> {
    if let Some(path) = &args.study {
        return Ok(Study::load(path)?);
    }
    let QuickArgs {
        bodies,
        quartets,
        margin,
        health,
        allow_other_servers,
    } = &args.quick;
    let quick = QuickStudy {
        words: args.commands.clone(),
        bodies: if bodies.is_empty() {
            samples(&cache_folder())?
        } else {
            listed(bodies)?
        },
        quartets: *quartets,
        margin: *margin,
        health: health.clone(),
        allow_other_servers: *allow_other_servers,
    };
    let (path, text) = quick.file().map_err(|e| Failure::new(Exit::Usage, e))?;
    // Lines and columns would be those of a file that nobody wrote.
    Study::of_bytes(&path, text.into_bytes()).map_err(|error| match error {
        StudyError::Invalid { message, .. } => Failure::new(Exit::Usage, message),
        error => error.into(),
    })
}

/// Files, and the JSON files of folders, as absolute paths.
fn listed(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in given {
        let refuse = |e: std::io::Error| {
            let message = format!("cannot read the body {}: {e}", path.display());
            Failure::new(Exit::Usage, message)
        };
        let place = path.canonicalize().map_err(refuse)?;
        if place.is_dir() {
            let entries = fs::read_dir(&place).map_err(refuse)?;
            let mut inside: Vec<PathBuf> = entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|file| file.extension().is_some_and(|e| e == "json"))
                .collect();
            inside.sort();
            if inside.is_empty() {
                let message = format!("{} holds no bodies: no file NAME.json", path.display());
                return Err(Failure::new(Exit::Usage, message));
            }
            all.extend(inside);
        } else {
            all.push(place);
        }
    }
    Ok(all)
}

/// The sample bodies, written where they can be read; the same content has the same place.
fn samples(cache: &Path) -> Result<Vec<PathBuf>, Failure> {
    let all: Vec<&str> = SAMPLE_BODIES.iter().map(|(_, body)| *body).collect();
    let folder = cache
        .join("bodies")
        .join(&sha256_hex(all.concat().as_bytes())[..8]);
    let mut written = Vec::new();
    for (name, body) in SAMPLE_BODIES {
        let path = folder.join(name);
        if fs::read(&path).ok().as_deref() != Some(body.as_bytes()) {
            replace_file(&path, body.as_bytes()).map_err(|e| {
                let message = format!("cannot write {}: {e}", path.display());
                Failure::new(Exit::Usage, message)
            })?;
        }
        written.push(path);
    }
    Ok(written)
}

/// A failure that says how to go on, without a study file to name: the archive holds one.
pub(super) fn resumable(failure: Failure) -> Failure {
    let Some((_, archive)) = failure.message.rsplit_once(" --resume ") else {
        return failure;
    };
    let again = format!("run {archive}/study.toml");
    Failure {
        message: failure.message.replace("run STUDY.toml", &again),
        ..failure
    }
}
