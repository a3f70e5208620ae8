//! One finding.

use serde::{Deserialize, Serialize};

/// What kind of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKind {
    /// Another process used the CPUs.
    OtherProcess,
    /// Too little memory was available.
    Memory,
    /// The server's pages came from disk.
    MajorFaults,
    /// More was waiting to run than there are processors.
    Load,
    /// The hypervisor ran others.
    Steal,
    /// Memory went to swap or came from it.
    Swap,
    /// A CPU was too hot.
    Thermal,
    /// A limit on CPU time held the server back.
    HeldBack,
    /// The CPU ran slower.
    Frequency,
}

impl NoiseKind {
    /// In a column.
    pub fn title(self) -> &'static str {
        match self {
            Self::OtherProcess => "other process",
            Self::Memory => "memory",
            Self::MajorFaults => "major faults",
            Self::Load => "load",
            Self::Steal => "steal",
            Self::Swap => "swap",
            Self::Thermal => "thermal",
            Self::HeldBack => "CPU limit",
            Self::Frequency => "frequency",
        }
    }
}

/// Something that touched a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The session's folder.
    pub session: String,
    /// Whether the session counts.
    pub scored: bool,
    /// What it is.
    pub kind: NoiseKind,
    /// When it began, `HH:MM:SS` UTC, where it has a time.
    pub at: Option<String>,
    /// How much of it there was, in the unit of its limit.
    pub value: f64,
    /// From where on it is named.
    pub limit: f64,
    /// In words, with names and amounts.
    pub words: String,
}
