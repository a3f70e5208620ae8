//! Running a study to its sealed archive; shared by `run` and `demo`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::events::Events;
use super::{Exit, Failure, gate};
use crate::archive::Archive;
use crate::derive::{Figures, derive};
use crate::host::default_lock_path;
use crate::server::{Programs, ServerKind};
use crate::session::{All, Cancel, Console, Progress, RunOptions, run};
use crate::setup::{active, cache_folder, workspace_root};
use crate::study::Study;

/// What a run needs beyond the study.
#[derive(Debug)]
pub struct Request {
    /// Folder that archives are made in.
    pub archives: PathBuf,
    /// An unsealed archive to go on with.
    pub resume: Option<PathBuf>,
    /// Hash everything anew.
    pub rehash: bool,
    /// The engine's binary, if it was just built.
    pub engine: Option<PathBuf>,
}

/// What a run leaves.
#[derive(Debug)]
pub struct Outcome {
    /// The sealed archive.
    pub archive: PathBuf,
    /// Everything derived from it.
    pub figures: Figures,
    /// Done, or what the gate and the token identities say.
    pub exit: Exit,
    /// Why it is not `Done`.
    pub reason: Option<String>,
}

/// Runs the sessions that are missing, derives, seals, and judges.
pub fn run_to_seal(study: &Study, request: Request) -> Result<Outcome, Failure> {
    run_and_tell(study, request, None)
}

/// The same, told on standard output as it happens.
pub(super) fn run_and_tell(
    study: &Study,
    request: Request,
    events: Option<&Events>,
) -> Result<Outcome, Failure> {
    let cancel = Cancel::on_interrupt()
        .map_err(|e| Failure::new(Exit::HostGuard, format!("cannot listen for Ctrl-C: {e}")))?;
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let cache = cache_folder();
    let options = RunOptions {
        archives: request.archives,
        resume: request.resume,
        programs: programs(study, request.engine)?,
        hash_cache: Some(cache.join("hashes.json")),
        builds: cache.join("builds"),
        rehash: request.rehash,
        lock: std::env::var_os("PALINDROME_LOCK").map_or_else(default_lock_path, PathBuf::from),
        checkout: workspace_root(&here).unwrap_or(here),
        versions: BTreeMap::from([(
            "palindrome".to_owned(),
            env!("CARGO_PKG_VERSION").to_owned(),
        )]),
    };
    let console = Console::new();
    let mut watching: Vec<&dyn Progress> = vec![&console];
    watching.extend(events.map(|events| events as &dyn Progress));
    let writer = run(study, &options, &cancel, &All(&watching))?;
    let facts = Archive::open(writer.path())?.facts()?;
    let figures = derive(&facts);
    let (exit, reason) = gate::judge(study, &figures);
    if let Some(events) = events {
        events.verdict(&figures, exit, reason.as_deref());
    }
    let archive = writer.seal(&figures)?;
    let outcome = Outcome {
        archive,
        figures,
        exit,
        reason,
    };
    if let Some(events) = events {
        events.sealed(&outcome);
    }
    Ok(outcome)
}

/// Only what the study's arms launch is looked for; an arm with its own `program` needs nothing.
pub(super) fn programs(study: &Study, built: Option<PathBuf>) -> Result<Programs, Failure> {
    let me = std::env::current_exe().map_err(|e| {
        Failure::new(
            Exit::Server,
            format!("cannot find this program's own file: {e}"),
        )
    })?;
    let needs = |kind| {
        study
            .arms
            .iter()
            .any(|arm| arm.kind == kind && arm.program.is_none() && arm.recipe.is_none())
    };
    let llama_cpp = if needs(ServerKind::LlamaCpp) {
        Some(active(&cache_folder())?)
    } else {
        None
    };
    let engine = built.or_else(|| beside(&me, "palindrome-engine"));
    Ok(Programs {
        engine,
        llama_cpp,
        palindrome: Some(me),
    })
}

/// A program in the folder of another.
pub(super) fn beside(me: &Path, name: &str) -> Option<PathBuf> {
    Some(me.with_file_name(name)).filter(|path| path.is_file())
}
