//! The study file as it is written: strict TOML, every table refusing keys it does not know.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::expect::Expect;
use super::looks::{Looks, LooksFile};
use super::protocol::{Limits, Protocol};
use super::protocol_file::ProtocolFile;
use super::rule::{Rule, RulesFile};
use super::switch::SwitchFile;
use crate::derive::Metric;
use crate::server::ServerKind;

/// A study file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyFile {
    /// Names the archive's folder.
    pub name: Spanned<String>,
    /// What the study asks, for people.
    #[serde(default)]
    pub question: Option<String>,
    /// Seed of the orientation coins.
    #[serde(default = "one")]
    pub seed: u64,
    /// Mirrored blocks; each gives two sessions an arm.
    #[serde(default = "three_quartets")]
    pub quartets: Spanned<u32>,
    /// Whether an unscored session comes first.
    #[serde(default = "yes")]
    pub burn_in: bool,
    /// `primary` as it is written.
    #[serde(default, rename = "primary")]
    pub(super) written_primary: Option<Spanned<Metric>>,
    /// The metric that the study is about: as written, or the protocol's first.
    #[serde(skip)]
    pub primary: Metric,
    /// Largest slowdown that still passes a gate, as a share (0.05 is 5%).
    #[serde(default)]
    pub margin: Option<Spanned<f64>>,
    /// `[gate]` as it is written.
    #[serde(default)]
    pub gate: RulesFile,
    /// What the gate demands; nothing where the study declares no margin.
    #[serde(skip)]
    pub rules: Vec<Rule>,
    /// How much two neighbouring sessions of one arm are taken to differ before the first one has
    /// run: standard deviation of their log-ratio, as a share (0.01 is 1%).
    #[serde(default)]
    pub assumed_spread: Option<Spanned<f64>>,
    /// How long one session is taken to last before the first one has run, seconds.
    #[serde(default)]
    pub assumed_session_s: Option<f64>,
    /// `[looks]` as it is written.
    #[serde(default, rename = "looks")]
    pub(super) written_looks: Option<LooksFile>,
    /// When the study may end early, and at what level; absent where only at its end.
    #[serde(skip)]
    pub looks: Option<Looks>,
    /// Which token hashes must agree.
    #[serde(default)]
    pub identity: Identity,
    /// Whether a session fails whose server is not found set as expected, or ran on another device
    /// or without the host's instruction set.
    #[serde(default)]
    pub strict: bool,
    /// What all arms share.
    #[serde(default)]
    pub base: ArmSettings,
    /// The arms, first is the baseline of ratios.
    #[serde(rename = "arm")]
    pub arms: Vec<ArmFile>,
    /// What is replayed.
    pub workload: WorkloadFile,
    /// `[protocol]` as it is written.
    #[serde(default, rename = "protocol")]
    pub(super) written_protocol: Option<ProtocolFile>,
    /// How it is replayed: as written, or one fresh session's bodies one at a time.
    #[serde(skip)]
    pub protocol: Protocol,
    /// What a request of an open loop must meet to count as good.
    #[serde(default)]
    pub limits: Option<Spanned<Limits>>,
    /// What the host must be like.
    #[serde(default)]
    pub guards: Guards,
    /// How long servers may take.
    #[serde(default)]
    pub server: ServerLimits,
}

/// Settings that `[base]` gives to all arms and an arm may override.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmSettings {
    /// Which adapter launches it.
    #[serde(default)]
    pub kind: Option<Spanned<ServerKind>>,
    /// Model file, relative to the study file.
    #[serde(default)]
    pub model: Option<Spanned<String>>,
    /// Worker threads.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Context length in tokens.
    #[serde(default)]
    pub ctx: Option<u32>,
    /// Further arguments; base's come before the arm's.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables added to the inherited ones.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What servers must be found to have done.
    #[serde(default)]
    pub expect: Expect,
    /// Program to launch instead of the one found (`llama-cpp`, `palindrome-engine`), relative to
    /// the study file; of a built arm, to the folder that it is built in.
    #[serde(default)]
    pub program: Option<Spanned<String>>,
    /// `openai`: program and arguments, with placeholders.
    #[serde(default)]
    pub command: Option<Spanned<Vec<Spanned<String>>>>,
    /// `openai`: the route that answers 200 once ready; `/health` if absent.
    #[serde(default)]
    pub health: Option<Spanned<String>>,
    /// `mock`: the timeline, relative to the study file.
    #[serde(default)]
    pub script: Option<Spanned<String>>,
    /// The command that builds it.
    #[serde(default)]
    pub build: Option<Spanned<Vec<String>>>,
    /// The git revision that is built.
    #[serde(default)]
    pub rev: Option<Spanned<String>>,
    /// The repository that is built, relative to the study file.
    #[serde(default)]
    pub repo: Option<Spanned<String>>,
}

/// One `[[arm]]`. (serde cannot flatten strictly, so base's keys are repeated.)
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmFile {
    /// Short name, used in folders: letters, digits, `-`, `_`.
    pub name: Spanned<String>,
    /// For people; the name if absent.
    #[serde(default)]
    pub label: Option<String>,
    /// See [`ArmSettings::kind`]; base's if absent.
    #[serde(default)]
    pub kind: Option<Spanned<ServerKind>>,
    /// Model file, relative to the study file.
    #[serde(default)]
    pub model: Option<Spanned<String>>,
    /// Worker threads.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Context length in tokens.
    #[serde(default)]
    pub ctx: Option<u32>,
    /// Further arguments; base's come before the arm's.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables added to the inherited ones.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// See [`ArmSettings::expect`]: these override base's, one by one.
    #[serde(default)]
    pub expect: Expect,
    /// Program to launch instead of the one found (`llama-cpp`, `palindrome-engine`), relative to
    /// the study file; of a built arm, to the folder that it is built in.
    #[serde(default)]
    pub program: Option<Spanned<String>>,
    /// `openai`: program and arguments, with placeholders.
    #[serde(default)]
    pub command: Option<Spanned<Vec<Spanned<String>>>>,
    /// `openai`: the route that answers 200 once ready; `/health` if absent.
    #[serde(default)]
    pub health: Option<Spanned<String>>,
    /// `mock`: the timeline, relative to the study file.
    #[serde(default)]
    pub script: Option<Spanned<String>>,
    /// Protocols of kind `paired`: how the server is told to use this arm's settings.
    #[serde(default)]
    pub switch: Option<Spanned<SwitchFile>>,
    /// The command that builds it.
    #[serde(default)]
    pub build: Option<Spanned<Vec<String>>>,
    /// The git revision that is built.
    #[serde(default)]
    pub rev: Option<Spanned<String>>,
    /// The repository that is built, relative to the study file.
    #[serde(default)]
    pub repo: Option<Spanned<String>>,
}

impl ArmFile {
    /// Which adapter launches it, by itself or by `base`; a parsed study has one for each arm.
    pub fn kind(&self, base: &ArmSettings) -> Option<ServerKind> {
        let kind = self.kind.as_ref().or(base.kind.as_ref());
        kind.map(|kind| *kind.as_ref())
    }
}

/// `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// Request bodies in replay order, relative to the study file.
    pub bodies: Spanned<Vec<Spanned<String>>>,
    /// Bodies replayed first, unscored.
    #[serde(default)]
    pub warmups: Vec<Spanned<String>>,
    /// Where bodies are posted.
    #[serde(default = "chat_path")]
    pub path: Spanned<String>,
    /// What the prompt cache may hold.
    #[serde(default)]
    pub expect_cached: ExpectCached,
    /// Longest one request may take.
    #[serde(default = "five_minutes")]
    pub timeout_s: f64,
}

/// `identity`: the equality class of an arm's answers over its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// Prompt and generated tokens agree.
    Exact,
    /// Prompt tokens agree.
    #[default]
    PromptOnly,
    /// Nothing is compared.
    None,
}

/// `workload.expect_cached`: how many prompt tokens the server may take from its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectCached {
    /// None, in every request.
    #[default]
    None,
    /// None in a session's first request; any number in those that follow it.
    Prefix,
    /// Any number.
    Any,
}

/// `[guards]`. Absent bounds are not checked.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Guards {
    /// Least available memory.
    pub min_free_ram_mb: Option<u64>,
    /// Highest one-minute load.
    pub max_load: Option<f64>,
    /// Highest PSI `some avg10` of the CPU, percent.
    pub max_psi_cpu_some10: Option<f64>,
    /// Highest PSI `some avg10` of memory, percent.
    pub max_psi_memory_some10: Option<f64>,
    /// Whether other inference servers may run.
    pub allow_other_servers: bool,
    /// How long to wait for the machine to settle, and for another run's lock.
    pub wait_s: f64,
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            min_free_ram_mb: None,
            max_load: None,
            max_psi_cpu_some10: None,
            max_psi_memory_some10: None,
            allow_other_servers: false,
            wait_s: 60.0,
        }
    }
}

/// `[server]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ServerLimits {
    /// Longest from launch to ready.
    pub ready_timeout_s: f64,
    /// From SIGTERM to SIGKILL.
    pub stop_grace_s: f64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            ready_timeout_s: 300.0,
            stop_grace_s: 10.0,
        }
    }
}

fn one() -> u64 {
    1
}

fn yes() -> bool {
    true
}

fn three_quartets() -> Spanned<u32> {
    Spanned::new(0..0, 3)
}

fn chat_path() -> Spanned<String> {
    Spanned::new(0..0, "/v1/chat/completions".to_owned())
}

fn five_minutes() -> f64 {
    300.0
}
