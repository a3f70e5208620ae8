//! The exact order of sessions, known before anything starts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::archive::minor;

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Run first, recorded, never scored.
    BurnIn,
    /// Counts.
    Scored,
}

/// One session of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSession {
    /// Position in the order, from 0.
    pub index: u32,
    /// Arm name.
    pub arm: String,
    /// Burn-in or scored.
    pub role: Role,
    /// Which quartet (from 0); absent for burn-in.
    pub quartet: Option<u32>,
    /// Which adjacent pair over the whole study (from 0); absent for burn-in.
    pub pair: Option<u32>,
}

/// `plan.json`: written before the first server starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// `major.minor`.
    pub schema: String,
    /// The study's name.
    pub study: String,
    /// sha256 of `study.toml`.
    pub study_sha256: String,
    /// Seed of the orientation coins.
    pub seed: u64,
    /// One a quartet: `true` is ABBA, `false` BAAB.
    pub coins: Vec<bool>,
    /// Arm names in the study's order; ratios are second over first.
    pub arms: Vec<String>,
    /// Warm-up bodies, replayed first in every session and never scored, with sha256.
    #[serde(default)]
    pub warmups: Vec<(String, String)>,
    /// Body names in replay order, with sha256.
    pub bodies: Vec<(String, String)>,
    /// Every session.
    pub sessions: Vec<PlannedSession>,
}

impl Plan {
    /// Minor version of the archive format that this plan's archive is in: figures newer than it
    /// are not derived.
    pub fn minor(&self) -> u32 {
        minor(&self.schema)
    }

    /// How many pairs of sessions it has.
    pub fn pairs(&self) -> usize {
        let pairs: BTreeSet<u32> = self.sessions.iter().filter_map(|s| s.pair).collect();
        pairs.len()
    }
}
