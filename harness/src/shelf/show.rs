//! What one archive holds.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::list::State;
use crate::archive::{Archive, ArchiveError, check_signature, list_files, sha256_hex};
use crate::derive::{Figures, Label};
use crate::study::Role;

/// An arm, as its first recorded session was launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownArm {
    /// Its name.
    pub name: String,
    /// Its label.
    pub label: Option<String>,
    /// What was started.
    pub command: Vec<String>,
    /// sha256 of the program.
    pub binary_sha256: Option<String>,
    /// Name and sha256 of each model file.
    pub models: Vec<(String, String)>,
}

/// A session of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownSession {
    /// Its folder.
    pub name: String,
    /// Its arm.
    pub arm: String,
    /// Scored, or burn-in.
    pub role: Role,
    /// Requests recorded.
    pub requests: usize,
    /// Tokens generated, where every request says so.
    pub tokens: Option<u64>,
    /// From its start to its end.
    pub milliseconds: u64,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The folder's name.
    pub id: String,
    /// Version of the format.
    pub format: String,
    /// Version of `derive` that published its figures.
    pub derive: Option<u32>,
    /// How far it is.
    #[serde(flatten)]
    pub state: State,
    /// sha256 of the manifest: what stands in the seal.
    pub manifest_sha256: Option<String>,
    /// Who signed it, in words.
    pub signature: String,
    /// When the study started, UTC.
    pub utc: String,
    /// The study's name.
    pub study: String,
    /// What it asks.
    pub question: Option<String>,
    /// The protocol's kind, and its terms as the plan states them.
    pub protocol: String,
    /// Quartets: the number of coins.
    pub quartets: usize,
    /// Seed of the coins.
    pub seed: u64,
    /// Request bodies, warm-ups included.
    pub bodies: usize,
    /// The machine, in words.
    pub host: String,
    /// Arms in their order.
    pub arms: Vec<ShownArm>,
    /// Recorded sessions in the order of the plan.
    pub sessions: Vec<ShownSession>,
    /// Lines in the run's log.
    pub events: usize,
    /// Files, all of them.
    pub files: usize,
    /// Their size.
    pub bytes: u64,
    /// Figures by label.
    pub figures: BTreeMap<String, usize>,
    /// The outcome, as published.
    pub verdict: Option<String>,
    /// What a reader must know before believing it.
    pub warnings: Vec<String>,
}

/// Looks at an archive; the audit says whether it holds.
pub fn show(archive: &Archive) -> Result<Shown, ArchiveError> {
    let facts = archive.facts()?;
    let figures = archive.figures()?;
    let plan = &facts.plan;
    let files = list_files(archive.path())?;
    let size = |file: &String| std::fs::metadata(archive.path().join(file)).map_or(0, |m| m.len());
    let arms = plan.arms.iter().map(|name| {
        let first = facts.sessions.iter().find(|s| s.planned.arm == *name);
        let launch = first.map(|s| &s.launch);
        let models = launch.iter().flat_map(|l| &l.models);
        ShownArm {
            name: name.clone(),
            label: launch.map(|l| l.label.clone()),
            command: launch.map(|l| l.command.clone()).unwrap_or_default(),
            binary_sha256: launch.map(|l| l.binary.sha256.clone()),
            models: models.map(|m| (m.path.clone(), m.sha256.clone())).collect(),
        }
    });
    let sessions = facts.sessions.iter().map(|s| ShownSession {
        name: s.name(),
        arm: s.planned.arm.clone(),
        role: s.planned.role,
        requests: s.requests.len(),
        tokens: s.requests.iter().map(|r| r.generated_tokens).sum(),
        milliseconds: s.end.ended_ns.saturating_sub(s.end.started_ns) / 1_000_000,
        error: s.end.error.clone(),
    });
    let mut by_label = BTreeMap::new();
    for figure in figures.iter().flat_map(Figures::all) {
        *by_label.entry(word(figure.label()).to_owned()).or_insert(0) += 1;
    }
    let host = &facts.host;
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "not shown".into());
    Ok(Shown {
        id: archive.name(),
        format: plan.schema.clone(),
        derive: figures.as_ref().map(Figures::derive_version),
        state: State::of(archive)?,
        manifest_sha256: archive
            .is_sealed()
            .then(|| archive.read("manifest.json"))
            .transpose()?
            .map(|b| sha256_hex(&b)),
        signature: match check_signature(&archive.path().join("manifest.json"), None) {
            Ok(None) => "none".into(),
            Ok(Some(signed)) => format!(
                "by key {}; `palindrome audit --key` says whether it is the one you know",
                signed.key
            ),
            Err((field, what)) => format!("DOES NOT HOLD: {field} {what}"),
        },
        utc: host.utc.clone(),
        study: plan.study.clone(),
        question: figures
            .as_ref()
            .and_then(|f| f.question().map(str::to_owned)),
        protocol: protocol(&serde_json::json!(plan.protocol)),
        quartets: plan.coins.len(),
        seed: plan.seed,
        bodies: plan.warmups.len() + plan.bodies.len(),
        host: format!(
            "{}, {} of {} cores, {} MiB, {}, kernel {}",
            known(&host.cpu_model),
            host.logical_cpus
                .map_or_else(|| "?".into(), |n| n.to_string()),
            host.physical_cores
                .map_or_else(|| "?".into(), |n| n.to_string()),
            host.memory_bytes
                .map_or_else(|| "?".into(), |n| (n >> 20).to_string()),
            known(&host.os),
            known(&host.kernel),
        ),
        arms: arms.collect(),
        sessions: sessions.collect(),
        events: facts.events.len(),
        bytes: files.iter().map(size).sum(),
        files: files.len(),
        figures: by_label,
        verdict: figures.as_ref().map(|f| f.verdict().sentence.clone()),
        warnings: figures
            .map(|f| f.verdict().warnings.clone())
            .unwrap_or_default(),
    })
}

/// Its kind, and what else it says of itself.
fn protocol(stated: &Value) -> String {
    let kind = stated["kind"].as_str().unwrap_or("not known");
    let more = stated.as_object().is_some_and(|fields| fields.len() > 1);
    if more {
        format!("{kind} {stated}")
    } else {
        kind.to_owned()
    }
}

fn word(label: Label) -> &'static str {
    match label {
        Label::Measured => "MEASURED",
        Label::Calculated => "CALCULATED",
        Label::Simulated => "SIMULATED",
        Label::Assumed => "ASSUMED",
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.id)?;
        writeln!(f, "state      {}", self.state.words())?;
        let derive = self
            .derive
            .map_or_else(|| "none yet".into(), |v| v.to_string());
        writeln!(f, "format     {}, figures of version {derive}", self.format)?;
        if let Some(hash) = &self.manifest_sha256 {
            writeln!(f, "manifest   sha256 {hash}")?;
        }
        writeln!(f, "signature  {}", self.signature)?;
        writeln!(f, "started    {}", self.utc)?;
        writeln!(f, "study      {}", self.study)?;
        if let Some(question) = &self.question {
            writeln!(f, "asks       {question}")?;
        }
        writeln!(
            f,
            "plan       {} quartets, seed {}, {} bodies, protocol {}",
            self.quartets, self.seed, self.bodies, self.protocol
        )?;
        writeln!(f, "host       {}", self.host)?;
        for arm in &self.arms {
            let label = arm.label.as_ref().filter(|label| **label != arm.name);
            let label = label.map(|label| format!(" ({label})")).unwrap_or_default();
            writeln!(
                f,
                "arm        {}{label}: {}",
                arm.name,
                arm.command.join(" ")
            )?;
            if let Some(hash) = &arm.binary_sha256 {
                writeln!(f, "           program sha256 {hash}")?;
            }
            for (path, hash) in &arm.models {
                writeln!(f, "           {path} sha256 {hash}")?;
            }
        }
        for s in &self.sessions {
            let role = match s.role {
                Role::BurnIn => ", burn-in",
                Role::Scored => "",
            };
            let tokens = s
                .tokens
                .map_or_else(|| "not counted".into(), |n| n.to_string());
            let seconds = s.milliseconds as f64 / 1000.0;
            let error = s
                .error
                .as_ref()
                .map(|e| format!(", FAILED: {e}"))
                .unwrap_or_default();
            writeln!(
                f,
                "session    {}: {} requests, {tokens} tokens, {seconds:.1} s{role}{error}",
                s.name, s.requests
            )?;
        }
        writeln!(f, "log        {} events", self.events)?;
        writeln!(
            f,
            "files      {}, {} KiB",
            self.files,
            self.bytes.div_ceil(1024)
        )?;
        let figures: Vec<String> = self
            .figures
            .iter()
            .map(|(l, n)| format!("{n} {l}"))
            .collect();
        if !figures.is_empty() {
            writeln!(f, "figures    {}", figures.join(", "))?;
        }
        for warning in &self.warnings {
            writeln!(f, "!          {warning}")?;
        }
        if let Some(verdict) = &self.verdict {
            writeln!(f, "verdict    {verdict}")?;
        }
        Ok(())
    }
}
