//! Building at a site: once a commit and command, or each time where the repository is built as it
//! lies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use super::git::{self, MISLEADING};
use super::lock::BuildLock;
use super::{BuildError, FailedBuild, Site};
use crate::archive::{replace_file, sha256_hex, utc_rfc3339};
use crate::server::{Redaction, describe, log_tail, redact_args};
use crate::study::Built;

/// Time between looks at a build, and from asking it to end to ending it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(5);

/// What is kept of a finished build beside its folder, written last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Finished {
    commit: String,
    command: Vec<String>,
    log_sha256: String,
    /// What the build changed of tracked files; absent where nothing, as it should be.
    #[serde(default)]
    diff_sha256: Option<String>,
    seconds: f64,
    utc: String,
}

/// A build that is there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) built: Built,
    /// Whether it was there before.
    pub(super) found: bool,
    /// How long it took, when it was made.
    pub(super) seconds: f64,
}

/// How a build tells of itself, and hears that it should end.
pub(super) struct Ears<'a> {
    pub(super) say: &'a dyn Fn(&str),
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

impl Site {
    /// Whether a build of this commit by this command is there, whole.
    pub fn is_made(&self) -> bool {
        self.finished().is_some()
    }

    fn finished(&self) -> Option<Finished> {
        let commit = self.commit.as_ref().filter(|_| self.rev.is_some())?;
        let record = fs::read(self.stem.with_extension("json")).ok()?;
        let record: Finished = serde_json::from_slice(&record).ok()?;
        let log = fs::read(&self.log).ok()?;
        let whole = record.commit == *commit
            && record.command == self.command
            && record.log_sha256 == sha256_hex(&log)
            && git::is_at(&self.tree, commit)
            && git::dirt(&self.tree).is_ok_and(|dirt| dirt.diff_sha256 == record.diff_sha256)
            && self
                .program
                .as_ref()
                .is_none_or(|program| program.is_file());
        whole.then_some(record)
    }

    /// Builds it, unless it is there.
    pub(super) fn make(&self, ears: &Ears<'_>) -> Result<Made, BuildError> {
        let cancelled = || BuildError::Cancelled {
            arm: self.arm.clone(),
        };
        let waiting = || (ears.say)("waiting: another run builds in the same folder");
        let lock = BuildLock::take(&self.stem.with_extension("lock"), waiting, ears.cancelled)?;
        let _lock = lock.ok_or_else(cancelled)?;
        if let Some(record) = self.finished() {
            return Ok(self.made(&record, true));
        }
        if self.rev.is_some() {
            (ears.say)(&format!(
                "checking out {} of {}",
                self.what(),
                self.repo.display()
            ));
            self.check_out()?;
        }
        let started = Instant::now();
        self.run(ears)?;
        if let Some(program) = self.program.as_ref().filter(|program| !program.is_file()) {
            return Err(BuildError::NoProgram {
                arm: self.arm.clone(),
                program: program.clone(),
                log: self.log.clone(),
            });
        }
        let log = fs::read(&self.log).map_err(BuildError::io("read", &self.log))?;
        let record = Finished {
            commit: self.commit.clone().unwrap_or_default(),
            command: self.command.clone(),
            log_sha256: sha256_hex(&log),
            diff_sha256: self.diff()?,
            seconds: started.elapsed().as_secs_f64(),
            utc: utc_rfc3339(SystemTime::now()),
        };
        if self.rev.is_some() {
            let path = self.stem.with_extension("json");
            let bytes = serde_json::to_vec_pretty(&record)
                .unwrap_or_else(|e| unreachable!("a record of strings is always JSON: {e}"));
            replace_file(&path, &bytes).map_err(BuildError::io("write", &path))?;
        }
        Ok(self.made(&record, false))
    }

    fn made(&self, record: &Finished, found: bool) -> Made {
        let mut facts = BTreeMap::from([("build".to_owned(), "source".to_owned())]);
        let mut add = |name: &str, value: Option<String>| {
            facts.extend(value.map(|value| (name.to_owned(), value)));
        };
        let command = redact_args(self.command.iter().cloned()).join(" ");
        let command = Redaction::of(&BTreeMap::new()).text(&command);
        add(
            "build_command",
            Some(command).filter(|line| !line.is_empty()),
        );
        add("commit", self.commit.clone());
        add("rev", self.rev.clone());
        add("log_sha256", Some(record.log_sha256.clone()));
        let dirty = match &self.rev {
            Some(_) => Some(record.diff_sha256.is_some()),
            None => self.dirt.as_ref().map(|d| d.dirty),
        };
        add("dirty", dirty.map(|dirty| dirty.to_string()));
        add("diff_sha256", record.diff_sha256.clone());
        Made {
            built: Built {
                tree: self.tree.clone(),
                facts,
            },
            found,
            seconds: record.seconds,
        }
    }

    /// How tracked files differ from the commit: of a repository that is built as it lies, before
    /// the build; of a worktree, after it.
    fn diff(&self) -> Result<Option<String>, BuildError> {
        if self.rev.is_none() {
            return Ok(self.dirt.as_ref().and_then(|d| d.diff_sha256.clone()));
        }
        let dirt = git::dirt(&self.tree).map_err(|said| BuildError::Worktree {
            arm: self.arm.clone(),
            repo: self.repo.clone(),
            said,
        })?;
        Ok(dirt.diff_sha256)
    }

    /// A fresh worktree of the commit; what an unfinished build left is removed.
    fn check_out(&self) -> Result<(), BuildError> {
        for leftover in [self.stem.with_extension("json"), self.log.clone()] {
            if leftover.exists() {
                fs::remove_file(&leftover).map_err(BuildError::io("remove", &leftover))?;
            }
        }
        if self.stem.exists() {
            fs::remove_dir_all(&self.stem).map_err(BuildError::io("remove", &self.stem))?;
        }
        fs::create_dir_all(&self.stem).map_err(BuildError::io("create", &self.stem))?;
        let commit = self.commit.as_deref().unwrap_or_default();
        git::add_worktree(&self.repo, &self.tree, commit).map_err(|said| BuildError::Worktree {
            arm: self.arm.clone(),
            repo: self.repo.clone(),
            said,
        })
    }

    fn run(&self, ears: &Ears<'_>) -> Result<(), BuildError> {
        let log = File::create(&self.log).map_err(BuildError::io("create", &self.log))?;
        let [program, args @ ..] = self.command.as_slice() else {
            return Ok(());
        };
        (ears.say)(&format!(
            "building arm {} from {}: {} (log: {})",
            self.arm,
            self.what(),
            self.command_line(),
            self.log.display()
        ));
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.tree)
            .stdin(Stdio::null())
            .stdout(
                log.try_clone()
                    .map_err(BuildError::io("share", &self.log))?,
            )
            .stderr(log)
            .process_group(0);
        if self.rev.is_some() {
            // The worktree is where it builds, whatever the caller's own builds are told.
            for name in MISLEADING {
                command.env_remove(name);
            }
        }
        let mut child = command.spawn().map_err(|source| BuildError::NotStarted {
            arm: self.arm.clone(),
            command: self.command_line(),
            tree: self.tree.clone(),
            source,
        })?;
        let status = loop {
            let ended = child
                .try_wait()
                .map_err(BuildError::io("wait for", Path::new(program)))?;
            if let Some(status) = ended {
                break status;
            }
            if (ears.cancelled)() {
                end(&mut child);
                return Err(BuildError::Cancelled {
                    arm: self.arm.clone(),
                });
            }
            thread::sleep(LOOK_EVERY);
        };
        if status.success() {
            return Ok(());
        }
        Err(BuildError::Failed(Box::new(FailedBuild {
            arm: self.arm.clone(),
            command: self.command_line(),
            tree: self.tree.clone(),
            how: describe(status),
            tail: log_tail(&fs::read(&self.log).unwrap_or_default()),
            log: self.log.clone(),
        })))
    }
}

/// Ends a build and all that it started.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    // A group that is gone is what is wanted.
    let _ = kill_process_group(group, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        if matches!(child.try_wait(), Ok(Some(_))) {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}
