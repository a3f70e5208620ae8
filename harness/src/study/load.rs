//! A study ready to run: the file checked, its bodies read, its paths resolved.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;

use super::arms::Arm;
use super::error::StudyError;
use super::file::{ArmFile, ExpectCached, Guards, Identity, ServerLimits, StudyFile};
use super::looks::Looks;
use super::protocol::Protocol;
use super::rule::Rule;
use super::switch::{Switch, arms_body, with_fields};
use crate::archive::sha256_hex;
use crate::derive::Metric;

/// A request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Plain file name in the archive's `workload/`: the path with `-` for `/`.
    pub name: String,
    /// Where it was read.
    pub source: PathBuf,
    /// As sent.
    pub bytes: Vec<u8>,
    /// Lower-case hex.
    pub sha256: String,
}

/// What every session replays.
#[derive(Clone, Debug)]
pub struct Workload {
    /// In order.
    pub bodies: Vec<Body>,
    /// Before them, unscored.
    pub warmups: Vec<Body>,
    /// Where they are posted.
    pub path: String,
    /// What the prompt cache may hold.
    pub expect_cached: ExpectCached,
    /// Longest one request may take.
    pub timeout: Duration,
}

/// A checked study.
#[derive(Clone, Debug)]
pub struct Study {
    /// The file.
    pub path: PathBuf,
    /// Its bytes, as they go into the archive.
    pub bytes: Vec<u8>,
    /// Their sha256.
    pub sha256: String,
    /// See [`StudyFile::name`].
    pub name: String,
    /// See [`StudyFile::question`].
    pub question: Option<String>,
    /// See [`StudyFile::seed`].
    pub seed: u64,
    /// See [`StudyFile::quartets`].
    pub quartets: u32,
    /// See [`StudyFile::burn_in`].
    pub burn_in: bool,
    /// See [`StudyFile::primary`].
    pub primary: Metric,
    /// Largest slowdown of the primary metric that passes: see [`StudyFile::primary_rule`].
    pub margin: Option<f64>,
    /// See [`StudyFile::rules`].
    pub rules: Vec<Rule>,
    /// See [`StudyFile::assumed_spread`].
    pub assumed_spread: Option<f64>,
    /// See [`StudyFile::assumed_session_s`].
    pub assumed_session_s: Option<f64>,
    /// See [`StudyFile::looks`].
    pub looks: Option<Looks>,
    /// See [`StudyFile::identity`].
    pub identity: Identity,
    /// See [`StudyFile::strict`].
    pub strict: bool,
    /// The arms in file order.
    pub arms: Vec<Arm>,
    /// What is replayed.
    pub workload: Workload,
    /// How it is replayed.
    pub protocol: Protocol,
    /// Bounds of the host.
    pub guards: Guards,
    /// Limits of servers.
    pub server: ServerLimits,
}

/// The plain file name in an archive's `workload/` of a body that a study names by path.
pub fn archived_name(path: &str) -> String {
    let parts: Vec<_> = path
        .split('/')
        .filter(|p| !matches!(*p, "" | "." | ".."))
        .collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    parts
        .join("-")
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

impl Study {
    /// Reads and checks a study and everything that it names.
    pub fn load(path: &Path) -> Result<Self, StudyError> {
        let unreadable = |reason: String| StudyError::Unreadable {
            path: path.to_path_buf(),
            reason,
        };
        let bytes = std::fs::read(path).map_err(|e| unreadable(e.to_string()))?;
        Self::of_bytes(path, bytes)
    }

    /// The same of a study file that is not written: `path` is where it would be, which its own
    /// relative paths start from.
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, StudyError> {
        let unreadable = |reason: String| StudyError::Unreadable {
            path: path.to_path_buf(),
            reason,
        };
        let text =
            std::str::from_utf8(&bytes).map_err(|e| unreadable(format!("not UTF-8 text: {e}")))?;
        let file = StudyFile::parse(path, text)?;
        let folder = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let source = Source { path, text, folder };
        let margin = file.primary_rule().map(|rule| rule.margin);
        let arms = source.arms(&file)?;
        let mut warmups = source.bodies(&file.workload.warmups)?;
        let mut bodies = source.bodies(file.workload.bodies.as_ref())?;
        source.distinct(&warmups, &bodies, file.workload.bodies.span())?;
        if matches!(file.protocol, Protocol::Paired { .. }) {
            source.one_server(&arms, &file.arms)?;
            let span = file.workload.bodies.span();
            warmups = source.of_arms(&warmups, &arms, span.clone())?;
            bodies = source.of_arms(&bodies, &arms, span)?;
        }
        Ok(Self {
            path: path.to_path_buf(),
            sha256: sha256_hex(&bytes),
            name: file.name.into_inner(),
            question: file.question,
            seed: file.seed,
            quartets: file.quartets.into_inner(),
            burn_in: file.burn_in,
            primary: file.primary,
            protocol: file.protocol,
            margin,
            rules: file.rules,
            assumed_spread: file.assumed_spread.map(Spanned::into_inner),
            assumed_session_s: file.assumed_session_s,
            looks: file.looks,
            identity: file.identity,
            strict: file.strict,
            arms,
            workload: Workload {
                bodies,
                warmups,
                path: file.workload.path.into_inner(),
                expect_cached: file.workload.expect_cached,
                timeout: Duration::from_secs_f64(file.workload.timeout_s),
            },
            guards: file.guards,
            server: file.server,
            bytes,
        })
    }

    /// Files for the archive's `workload/`, each once.
    pub fn workload_files(&self) -> Vec<(String, Vec<u8>)> {
        let all = self.workload.warmups.iter().chain(&self.workload.bodies);
        let files: BTreeMap<_, _> = all.map(|b| (b.name.clone(), b.bytes.clone())).collect();
        files.into_iter().collect()
    }
}

/// The text being checked, for messages and relative paths.
pub(super) struct Source<'a> {
    path: &'a Path,
    text: &'a str,
    /// The folder that the study file is in.
    pub(super) folder: &'a Path,
}

impl Source<'_> {
    pub(super) fn error(&self, span: Range<usize>, message: impl Into<String>) -> StudyError {
        StudyError::at(self.path, self.text, span, message)
    }

    pub(super) fn file(&self, what: &str, name: &Spanned<String>) -> Result<PathBuf, StudyError> {
        let place = self.folder.join(name.as_ref());
        if place.is_file() {
            return Ok(place.canonicalize().unwrap_or(place));
        }
        let message = format!(
            "{what} {:?} not found: looked for {}",
            name.as_ref(),
            place.display()
        );
        Err(self.error(name.span(), message))
    }

    /// Where a body lies that the study file names by its old path: an archived study can be run
    /// again as it is.
    fn in_archive(&self, name: &str) -> Option<PathBuf> {
        let archived = self.folder.join("workload").join(archived_name(name));
        let there = self.folder.join("plan.json").is_file() && archived.is_file();
        (there && !self.folder.join(name).is_file()).then_some(archived)
    }

    fn bodies(&self, names: &[Spanned<String>]) -> Result<Vec<Body>, StudyError> {
        names.iter().map(|name| self.body(name)).collect()
    }

    fn body(&self, name: &Spanned<String>) -> Result<Body, StudyError> {
        let source = match self.in_archive(name.as_ref()) {
            Some(archived) => archived,
            None => self.file("body", name)?,
        };
        let bytes = std::fs::read(&source).map_err(|e| {
            self.error(
                name.span(),
                format!("cannot read body {}: {e}", source.display()),
            )
        })?;
        let body: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| {
            let message = format!(
                "body {} is not JSON, so no server would answer it: {e}",
                source.display()
            );
            self.error(name.span(), message)
        })?;
        if body["stream"] != true {
            let message = format!(
                "body {} does not ask for a stream, so nothing of it could be timed: give it `\"stream\": true`",
                source.display()
            );
            return Err(self.error(name.span(), message));
        }
        Ok(Body {
            name: archived_name(name.as_ref()),
            source,
            sha256: sha256_hex(&bytes),
            bytes,
        })
    }

    /// Two files must not share a name in the archive.
    fn distinct(
        &self,
        warmups: &[Body],
        bodies: &[Body],
        span: Range<usize>,
    ) -> Result<(), StudyError> {
        let mut seen: BTreeMap<&str, &Body> = BTreeMap::new();
        for body in warmups.iter().chain(bodies) {
            if let Some(other) = seen.insert(&body.name, body)
                && other.source != body.source
            {
                let message = format!(
                    "bodies {} and {} would both be archived as {:?}; rename one",
                    other.source.display(),
                    body.source.display(),
                    body.name
                );
                return Err(self.error(span, message));
            }
        }
        Ok(())
    }

    /// The arms of a paired study are one server: they differ in name, label and switch alone.
    fn one_server(&self, arms: &[Arm], written: &[ArmFile]) -> Result<(), StudyError> {
        let launched = |arm: &Arm| {
            let nameless = Arm {
                name: String::new(),
                label: String::new(),
                switch: None,
                ..arm.clone()
            };
            format!("{nameless:?}")
        };
        let first = arms.first().map(launched);
        for (arm, written) in arms.iter().zip(written) {
            if Some(launched(arm)) != first {
                let message = "the arms of a paired study are one server: they differ in `name`, `label` and `switch` \
                               alone (what they share can stand in [base])";
                return Err(self.error(written.name.span(), message));
            }
        }
        Ok(())
    }

    /// Each body once an arm, with the fields that its switch adds.
    fn of_arms(
        &self,
        bodies: &[Body],
        arms: &[Arm],
        span: Range<usize>,
    ) -> Result<Vec<Body>, StudyError> {
        let mut all = Vec::with_capacity(bodies.len() * arms.len());
        for body in bodies {
            for arm in arms {
                let bytes = match &arm.switch {
                    Some(Switch::Fields(fields)) => {
                        with_fields(&body.bytes, fields).map_err(|what| {
                            let of =
                                format!("body {} of arm {:?}", body.source.display(), arm.name);
                            self.error(span.clone(), format!("{of}: {what}"))
                        })?
                    }
                    _ => body.bytes.clone(),
                };
                all.push(Body {
                    name: arms_body(&body.name, &arm.name),
                    source: body.source.clone(),
                    sha256: sha256_hex(&bytes),
                    bytes,
                });
            }
        }
        Ok(all)
    }
}
