//! The run loop over a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::builds::{build, record_builds};
use super::one::{Failure, SessionRun};
use super::{Cancel, Progress, RunError};
use crate::archive::{Archive, ArchiveError, ArchiveWriter, session_folder_name};
use crate::derive::{ended_by_look, followed};
use crate::host::{GuardError, HostFacts, Readings, RunLock, wait_until_fit};
use crate::server::{HashCache, LaunchError, Programs};
use crate::study::{Arm, Plan, PlannedSession, Study};

/// Where things are and go.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Folder that archives are made in.
    pub archives: PathBuf,
    /// An unsealed archive to go on with.
    pub resume: Option<PathBuf>,
    /// Programs that adapters launch.
    pub programs: Programs,
    /// File that remembers hashes of large files.
    pub hash_cache: Option<PathBuf>,
    /// Folder that builds of arms are kept in.
    pub builds: PathBuf,
    /// Hash everything anew.
    pub rehash: bool,
    /// The machine's lock, usually `host::default_lock_path()`.
    pub lock: PathBuf,
    /// Folder whose git state is recorded.
    pub checkout: PathBuf,
    /// Versions of other programs, for `host.json`.
    pub versions: BTreeMap<String, String>,
}

/// Runs every session of a study that is not finished yet. The archive comes back complete and
/// unsealed: figures are derived from it and then it is sealed.
pub fn run(
    study: &Study,
    options: &RunOptions,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<ArchiveWriter, RunError> {
    let wait = Duration::from_secs_f64(study.guards.wait_s);
    let _lock = RunLock::take(
        &options.lock,
        wait,
        |why| progress.step(&format!("waiting: {why}")),
        || cancel.is_set(),
    )?;
    let (study, records) = build(study, options, cancel, progress)?;
    let study = &study;
    let archive = open_archive(study, options)?;
    record_builds(&archive, &records)?;
    let finished = archive.finished_sessions().map_err(broken(&archive))?;
    progress.planned(archive.path(), archive.plan(), &finished);
    let host = Archive::open(archive.path()).and_then(|a| a.host());
    let host = host.map_err(broken(&archive))?;
    let mut hashes = HashCache::open(options.hash_cache.clone(), options.rehash);
    let sessions = archive.plan().sessions.clone();
    let mut ended = None;
    for planned in sessions.iter().filter(|s| !finished.contains(s)) {
        ended = look(&archive, planned)?;
        if ended.is_some() {
            break;
        }
        let Some(arm) = study.arms.iter().find(|a| a.name == planned.arm) else {
            let reason = format!(
                "its plan names the arm {:?}, which the study does not have",
                planned.arm
            );
            return Err(RunError::OtherStudy {
                archive: archive.path().to_path_buf(),
                reason,
            });
        };
        progress.session(planned);
        guarded_session(
            study,
            options,
            &archive,
            planned,
            arm,
            &host,
            &mut hashes,
            cancel,
            progress,
        )?;
        progress.committed(planned);
    }
    progress.finished();
    archive
        .event("sessions-complete", {
            let sessions = followed(archive.plan(), ended).len();
            json!({ "sessions": sessions, "ended_by_look_after_quartets": ended })
        })
        .map_err(broken(&archive))?;
    Ok(archive)
}

/// Before the first session after a planned look: whether the look ends the study, and after how
/// many quartets. Nothing is looked at anywhere else.
fn look(archive: &ArchiveWriter, next: &PlannedSession) -> Result<Option<u32>, RunError> {
    let plan = archive.plan();
    let at_a_look = |q: &u32| plan.looks.as_ref().is_some_and(|l| l.at.contains(q));
    let Some(quartets) = next.quartet.filter(at_a_look) else {
        return Ok(None);
    };
    if plan.sessions.iter().find(|s| s.quartet == Some(quartets)) != Some(next) {
        return Ok(None);
    }
    let seen = Archive::open(archive.path()).and_then(|a| a.facts());
    let ended = ended_by_look(&seen.map_err(broken(archive))?);
    archive
        .event(
            "looked",
            json!({ "quartets": quartets, "ended": ended.is_some() }),
        )
        .map_err(broken(archive))?;
    Ok(ended)
}

pub(super) fn broken(archive: &ArchiveWriter) -> impl FnOnce(ArchiveError) -> RunError {
    let path = archive.path().to_path_buf();
    move |source| RunError::Archive {
        source,
        archive: Some(path),
    }
}

fn open_archive(study: &Study, options: &RunOptions) -> Result<ArchiveWriter, RunError> {
    let mut plan = Plan::of(study);
    let host = HostFacts::collect(&options.checkout, options.versions.clone());
    let Some(path) = &options.resume else {
        return ArchiveWriter::create(
            &options.archives,
            &study.bytes,
            &plan,
            &host,
            &study.workload_files(),
        )
        .map_err(|source| RunError::Archive {
            source,
            archive: None,
        });
    };
    let archive = ArchiveWriter::resume(path).map_err(|source| match source {
        ArchiveError::Sealed(_) | ArchiveError::NotAnArchive { .. } => RunError::OtherStudy {
            archive: path.clone(),
            reason: source.to_string(),
        },
        source => RunError::Archive {
            source,
            archive: Some(path.clone()),
        },
    })?;
    // An archive goes on in the format that it was begun in.
    plan.schema.clone_from(&archive.plan().schema);
    let other = |reason: &str| RunError::OtherStudy {
        archive: path.clone(),
        reason: reason.to_owned(),
    };
    if archive.plan().study_sha256 != plan.study_sha256 {
        return Err(other(
            "the study file has changed since (its sha256 differs); start a new archive",
        ));
    }
    if *archive.plan() != plan {
        return Err(other(
            "a request body has changed since; start a new archive",
        ));
    }
    let begun_on = Archive::open(path)
        .and_then(|archive| archive.host())
        .map_err(broken(&archive))?;
    let machines = begun_on.machine().into_iter().zip(host.machine());
    for ((field, there), (_, here)) in machines {
        if there != here {
            return Err(other(&format!(
                "it was begun on another machine ({field} was {there}, here it is {here}); go on there, or start a \
                 new archive"
            )));
        }
    }
    let detail = json!({ "host": host });
    archive
        .event("host-on-resume", detail)
        .map_err(broken(&archive))?;
    Ok(archive)
}

#[expect(
    clippy::too_many_arguments,
    reason = "one call site; a struct would only rename them"
)]
fn guarded_session(
    study: &Study,
    options: &RunOptions,
    archive: &ArchiveWriter,
    planned: &PlannedSession,
    arm: &Arm,
    host: &HostFacts,
    hashes: &mut HashCache,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<(), RunError> {
    let session = session_folder_name(planned);
    let path = archive.path().to_path_buf();
    let cancelled = || cancel.is_set();
    let mut unlogged = None;
    let waiting = |reasons: &[String]| {
        progress.step(&format!("waiting: {}", reasons.join("; ")));
        let detail = json!({ "session": session, "reasons": reasons });
        unlogged = archive.event("guard-waiting", detail).err();
    };
    let fit = wait_until_fit(&study.guards, Readings::take, waiting, cancelled);
    if let Some(source) = unlogged {
        return Err(broken(archive)(source));
    }
    let seen = match fit {
        Ok(seen) => seen,
        Err(GuardError::Cancelled) => return Err(interrupted(archive, &session)),
        Err(source) => {
            let detail = json!({ "session": session, "reason": source.to_string() });
            archive
                .event("guard-refused", detail)
                .map_err(broken(archive))?;
            return Err(RunError::Guard {
                session,
                source,
                archive: path,
            });
        }
    };
    let detail = json!({
        "session": session,
        "available_bytes": seen.available_bytes,
        "load1": seen.load1,
        "psi_cpu_some10": seen.psi_cpu_some10,
    });
    archive
        .event("guard-passed", detail)
        .map_err(broken(archive))?;
    let run = SessionRun {
        study,
        programs: &options.programs,
        archive,
        planned,
        arm,
        host,
        cancel,
        progress,
    };
    match run.run(hashes) {
        Ok(()) => Ok(()),
        Err(Failure::Archive(source)) => Err(broken(archive)(source)),
        Err(Failure::Interrupted | Failure::Launch(LaunchError::Cancelled { .. })) => {
            Err(interrupted(archive, &session))
        }
        Err(Failure::Launch(source)) => {
            let detail = json!({ "session": session, "error": source.to_string() });
            archive
                .event("session-failed", detail)
                .map_err(broken(archive))?;
            Err(RunError::Launch {
                session,
                source: Box::new(source),
                archive: path,
            })
        }
        Err(Failure::Server { reason, evidence }) => {
            let detail = json!({ "session": session, "error": reason, "evidence": evidence });
            archive
                .event("session-failed", detail)
                .map_err(broken(archive))?;
            Err(RunError::Session {
                session,
                reason,
                archive: path,
            })
        }
    }
}

fn interrupted(archive: &ArchiveWriter, session: &str) -> RunError {
    // Should even this line not be writable, resuming still works: a session without its commit
    // is discarded.
    if let Err(e) = archive.event("interrupted", json!({ "session": session })) {
        eprintln!("warning: the interruption could not be recorded: {e}");
    }
    RunError::Interrupted {
        archive: archive.path().to_path_buf(),
    }
}
