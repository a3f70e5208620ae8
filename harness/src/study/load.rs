//! A study ready to run: the file checked, its bodies read, its paths resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;

use super::bounds;
use super::error::StudyError;
use super::expect::Expect;
use super::file::{ArmFile, ArmSettings, ExpectCached, Guards, Identity, ServerLimits, StudyFile};
use super::looks::Looks;
use super::protocol::Protocol;
use super::rule::Rule;
use super::switch::{Switch, arms_body, with_fields};
use crate::archive::sha256_hex;
use crate::derive::Metric;
use crate::server::{ServerKind, is_literal_secret};

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

/// One arm, base's settings merged in, paths resolved.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Short name.
    pub name: String,
    /// For people.
    pub label: String,
    /// Which adapter launches it.
    pub kind: ServerKind,
    /// Model file.
    pub model: Option<PathBuf>,
    /// Worker threads.
    pub threads: Option<u32>,
    /// Context length in tokens.
    pub ctx: Option<u32>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Environment variables added.
    pub env: BTreeMap<String, String>,
    /// Program given in place of the one found.
    pub program: Option<PathBuf>,
    /// Command of an `openai` arm.
    pub command: Vec<String>,
    /// Health route of an `openai` arm.
    pub health: String,
    /// Timeline of a `mock` arm.
    pub script: Option<PathBuf>,
    /// What its servers must be found to have done.
    pub expect: Expect,
    /// How a paired study's server is told to use this arm's settings; absent in any other.
    pub switch: Option<Switch>,
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

impl StudyFile {
    /// Parses a study file's text; `path` is for messages only. Opens no other file, so an archived
    /// study can be read anywhere.
    pub fn parse(path: &Path, text: &str) -> Result<Self, StudyError> {
        let file: Self = toml::from_str(text).map_err(|e| StudyError::from_toml(path, text, &e))?;
        let bad =
            |span: Range<usize>, message: String| Err(StudyError::at(path, text, span, message));
        if file.name.as_ref().trim().is_empty() {
            return bad(
                file.name.span(),
                "the name is empty; it names the archive's folder".into(),
            );
        }
        if *file.quartets.as_ref() == 0 || *file.quartets.as_ref() > 1000 {
            return bad(
                file.quartets.span(),
                format!(
                    "quartets = {} measures nothing; give 1 to 1000 (each is two sessions an arm)",
                    file.quartets.as_ref()
                ),
            );
        }
        if let Some(margin) = &file.margin
            && !(*margin.as_ref() > 0.0 && *margin.as_ref() < 1.0)
        {
            return bad(
                margin.span(),
                format!("margin = {} is no share; 0.05 means 5%", margin.as_ref()),
            );
        }
        if let Some(spread) = &file.assumed_spread
            && !(*spread.as_ref() > 0.0 && *spread.as_ref() < 1.0)
        {
            return bad(
                spread.span(),
                format!(
                    "assumed_spread = {} is no share; 0.01 means 1%",
                    spread.as_ref()
                ),
            );
        }
        let looks = file.resolve_looks();
        looks.map_err(|(span, what)| StudyError::at(path, text, span, what))?;
        let mut seen = BTreeSet::new();
        for arm in &file.arms {
            let name = arm.name.as_ref();
            if name.is_empty()
                || !name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            {
                return bad(
                    arm.name.span(),
                    format!(
                        "arm name {name:?} is used in folder names: letters, digits, `-` and `_` only"
                    ),
                );
            }
            if !seen.insert(name) {
                return bad(
                    arm.name.span(),
                    format!("two arms are named {name:?}; names tell their sessions apart"),
                );
            }
        }
        if file.arms.len() < 2 {
            return bad(
                0..0,
                format!(
                    "{} arm given; a comparison needs at least two `[[arm]]` tables",
                    file.arms.len()
                ),
            );
        }
        if file.workload.bodies.as_ref().is_empty() {
            return bad(
                file.workload.bodies.span(),
                "no bodies: nothing would be measured".into(),
            );
        }
        let target = file.workload.path.as_ref();
        if target.starts_with("https:") {
            return bad(file.workload.path.span(), "https is not supported: servers are launched on loopback; give a path such as /v1/chat/completions".into());
        }
        if !target.starts_with('/')
            || target.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return bad(
                file.workload.path.span(),
                format!("path {target:?} must start with `/`, as in /v1/chat/completions"),
            );
        }
        let protocol = file.resolve_protocol();
        let protocol = protocol.map_err(|(span, what)| StudyError::at(path, text, span, what))?;
        let switched = file.arms.iter().find_map(|arm| arm.switch.as_ref());
        if let Some(switch) = switched
            && !matches!(protocol, Protocol::Paired { .. })
        {
            let what = "`switch` is for protocols of kind paired";
            return bad(switch.span(), what.into());
        }
        let metrics = Metric::of(&protocol);
        if let Some(primary) = &file.primary
            && !metrics.contains(primary.as_ref())
        {
            let known: Vec<&str> = metrics.iter().map(|m| m.key()).collect();
            return bad(
                primary.span(),
                format!(
                    "primary = {:?} is not a metric of this protocol; give one of {}",
                    primary.as_ref().key(),
                    known.join(", ")
                ),
            );
        }
        if let Some((span, what)) = file.bad_expectation() {
            return bad(span, what);
        }
        let rules = file.resolve_rules();
        rules.map_err(|(span, what)| StudyError::at(path, text, span, what))?;
        bounds::check(path, text, &file)?;
        Ok(file)
    }

    fn resolve_protocol(&self) -> Result<Protocol, (Range<usize>, String)> {
        let limits = self.limits.as_ref();
        match (&self.protocol, limits) {
            (Some(protocol), _) => protocol.resolve(&self.workload, limits, &self.arms),
            (None, None) => Ok(Protocol::Fresh),
            (None, Some(limits)) => Err((
                limits.span(),
                "`[limits]` is for protocols of kind open-loop or arrivals; this study has no `[protocol]`"
                    .into(),
            )),
        }
    }

    fn resolve_looks(&self) -> Result<Option<Looks>, (Range<usize>, String)> {
        let written = self.looks.as_ref();
        written
            .map(|looks| looks.resolve(*self.quartets.as_ref()))
            .transpose()
    }

    /// When the study may end early, and at what level; absent where only at its end.
    pub fn looks(&self) -> Option<Looks> {
        // `parse` has refused what does not resolve.
        self.resolve_looks().unwrap_or_default()
    }

    /// How the workload is replayed: as written, or one fresh session's bodies one at a time.
    pub fn protocol(&self) -> Protocol {
        // `parse` has refused what does not resolve.
        self.resolve_protocol().unwrap_or_default()
    }

    /// The metric that the study is about: as written, or the protocol's first.
    pub fn primary(&self) -> Metric {
        match &self.primary {
            Some(metric) => *metric.as_ref(),
            None => Metric::of(&self.protocol())[0],
        }
    }
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
        let (protocol, primary) = (file.protocol(), file.primary());
        let looks = file.looks();
        let (rules, margin) = (file.rules(), file.primary_rule().map(|rule| rule.margin));
        let arms = file
            .arms
            .iter()
            .map(|a| source.arm(a, &file.base))
            .collect::<Result<Vec<_>, _>>()?;
        let mut warmups = source.bodies(&file.workload.warmups)?;
        let mut bodies = source.bodies(file.workload.bodies.as_ref())?;
        source.distinct(&warmups, &bodies, file.workload.bodies.span())?;
        if matches!(protocol, Protocol::Paired { .. }) {
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
            primary,
            protocol,
            margin,
            rules,
            assumed_spread: file.assumed_spread.map(Spanned::into_inner),
            looks,
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
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
    folder: &'a Path,
}

impl Source<'_> {
    fn error(&self, span: Range<usize>, message: impl Into<String>) -> StudyError {
        StudyError::at(self.path, self.text, span, message)
    }

    fn file(&self, what: &str, name: &Spanned<String>) -> Result<PathBuf, StudyError> {
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

    fn bodies(&self, names: &[Spanned<String>]) -> Result<Vec<Body>, StudyError> {
        names.iter().map(|name| self.body(name)).collect()
    }

    fn body(&self, name: &Spanned<String>) -> Result<Body, StudyError> {
        let source = self.file("body", name)?;
        let bytes = std::fs::read(&source).map_err(|e| {
            self.error(
                name.span(),
                format!("cannot read body {}: {e}", source.display()),
            )
        })?;
        if let Err(e) = serde_json::from_slice::<serde_json::Value>(&bytes) {
            let message = format!(
                "body {} is not JSON, so no server would answer it: {e}",
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

    fn arm(&self, arm: &ArmFile, base: &ArmSettings) -> Result<Arm, StudyError> {
        let kind = *arm.kind.as_ref();
        let refuse = |span: Range<usize>, key: &str, of: &str| {
            let message = format!(
                "`{key}` is for arms of kind {of}; arm {:?} is {}",
                arm.name.as_ref(),
                kind.name()
            );
            Err(self.error(span, message))
        };
        if let Some(command) = &arm.command
            && kind != ServerKind::Openai
        {
            return refuse(command.span(), "command", "openai");
        }
        if let Some(script) = &arm.script
            && kind != ServerKind::Mock
        {
            return refuse(script.span(), "script", "mock");
        }
        if let Some(program) = &arm.program
            && !matches!(kind, ServerKind::LlamaCpp | ServerKind::PalindromeEngine)
        {
            return refuse(program.span(), "program", "llama-cpp or palindrome-engine");
        }
        let model = match arm.model.as_ref().or(base.model.as_ref()) {
            Some(model) => Some(self.file("model", model)?),
            None if matches!(kind, ServerKind::LlamaCpp | ServerKind::PalindromeEngine) => {
                let message = format!(
                    "arm {:?} has no model; give `model` here or in [base]",
                    arm.name.as_ref()
                );
                return Err(self.error(arm.name.span(), message));
            }
            None => None,
        };
        let command = match (&arm.command, kind) {
            (Some(command), _) if !command.as_ref().is_empty() => command.as_ref().clone(),
            (_, ServerKind::Openai) => {
                let message = format!(
                    "arm {:?} needs `command = [\"program\", \"--port\", \"{{port}}\", ...]`",
                    arm.name.as_ref()
                );
                return Err(self.error(arm.name.span(), message));
            }
            _ => Vec::new(),
        };
        let script = match (&arm.script, kind) {
            (Some(script), _) => Some(self.file("script", script)?),
            (None, ServerKind::Mock) => {
                let message = format!(
                    "arm {:?} needs `script`, the mock's timeline",
                    arm.name.as_ref()
                );
                return Err(self.error(arm.name.span(), message));
            }
            (None, _) => None,
        };
        let mut env = base.env.clone();
        env.extend(arm.env.clone());
        if let Some((name, _)) = env.iter().find(|(n, v)| is_literal_secret(n, v)) {
            let message = format!(
                "arm {:?} sets {name} to what looks like a secret, and this file is kept in the \
                 archive as it is: leave it out and `export {name}=...` before the run; servers \
                 inherit the environment",
                arm.name.as_ref()
            );
            return Err(self.error(arm.name.span(), message));
        }
        Ok(Arm {
            name: arm.name.as_ref().clone(),
            label: arm
                .label
                .clone()
                .unwrap_or_else(|| arm.name.as_ref().clone()),
            kind,
            model,
            threads: arm.threads.or(base.threads),
            ctx: arm.ctx.or(base.ctx),
            args: base.args.iter().chain(&arm.args).cloned().collect(),
            env,
            program: arm
                .program
                .as_ref()
                .map(|p| self.file("program", p))
                .transpose()?,
            command,
            health: arm.health.clone().unwrap_or_else(|| "/health".to_owned()),
            script,
            expect: arm.expect.or(&base.expect),
            // `parse` has refused what does not resolve.
            switch: arm.switch.as_ref().and_then(|s| s.as_ref().resolve().ok()),
        })
    }
}
