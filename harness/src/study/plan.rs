//! The exact order of sessions, known before anything starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::protocol::{ALONE, Phase, Protocol, Way, at_level};
use super::{ExpectCached, Looks};
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// How every session replays its bodies; absent in the file where it is the default.
    #[serde(default, skip_serializing_if = "Protocol::is_fresh")]
    pub protocol: Protocol,
    /// What every session does, request by request; absent in the file where it is warm-ups and
    /// then bodies, one at a time. Read it with [`Plan::phases`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// When the study may end early; absent in the file where only at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looks>,
    /// Every session.
    pub sessions: Vec<PlannedSession>,
}

/// One request of every session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Position in the session, from 0.
    pub index: u32,
    /// The phase's name; absent where the protocol is the default.
    pub phase: Option<String>,
    /// How the phase sends its requests.
    pub way: Way,
    /// Whether it counts.
    pub scored: bool,
    /// Body's file name in `workload/`.
    pub body: String,
    /// sha256 of the body.
    pub sha256: String,
    /// When it is to be sent, in nanoseconds from the start of its phase.
    pub due_ns: Option<u64>,
    /// Whether its prompt may come from a cache, whatever the study expects.
    pub may_be_cached: bool,
}

/// Scored requests that are summed up together: all of a session, or those of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The level's name; absent where there are no levels.
    pub name: Option<String>,
    /// How its requests are sent.
    pub way: Way,
    /// Their indices.
    pub indices: Range<u32>,
}

impl Level {
    /// A figure's scope at this level.
    pub fn scope(&self, of: &str) -> String {
        at_level(of, self.name.as_deref())
    }
}

impl Step {
    /// The words for a request whose prompt must not come from a cache; absent where it may. Of
    /// requests in flight together none is the first, so `prefix` says nothing about them.
    pub fn declared_cold(&self, expected: ExpectCached) -> Option<&'static str> {
        let first = self.index == 0 && self.way == Way::OneByOne;
        match expected {
            _ if self.may_be_cached => None,
            ExpectCached::None => Some("none"),
            ExpectCached::Prefix if first => Some("none before the first request"),
            ExpectCached::Prefix | ExpectCached::Any => None,
        }
    }

    /// What is wrong with the cached prompt tokens of its answer; absent when nothing is, or when
    /// the server does not state them.
    pub fn cache_broken(
        &self,
        expected: ExpectCached,
        cached_tokens: Option<u64>,
    ) -> Option<String> {
        let cached = cached_tokens.filter(|n| *n > 0)?;
        let declared = self.declared_cold(expected)?;
        Some(format!(
            "{cached} prompt tokens came from the server's cache; the study declares {declared}"
        ))
    }
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

    /// Sessions up to the end of a number of quartets, burn-in included.
    pub fn sessions_until(&self, quartets: u32) -> impl Iterator<Item = &PlannedSession> {
        let until = move |s: &&PlannedSession| s.quartet.is_none_or(|q| q < quartets);
        self.sessions.iter().filter(until)
    }

    /// What every session does.
    pub fn phases(&self) -> Vec<Phase> {
        if !self.phases.is_empty() {
            return self.phases.clone();
        }
        let names = |bodies: &[(String, String)]| -> Vec<String> {
            bodies.iter().map(|(name, _)| name.clone()).collect()
        };
        self.protocol
            .phases(&names(&self.warmups), &names(&self.bodies))
    }

    /// What is summed up together, in the order of the phases.
    pub fn levels(&self) -> Vec<Level> {
        let named = !self.protocol.levels().is_empty();
        let mut levels = Vec::new();
        let mut begin = 0;
        for phase in self.phases() {
            let end = begin + phase.requests.len() as u32;
            if phase.scored {
                levels.push(Level {
                    name: named.then_some(phase.name),
                    way: phase.way,
                    indices: begin..end,
                });
            }
            begin = end;
        }
        levels
    }

    /// Every request of one session: as of every session, but where the protocol is paired and the
    /// second arm leads; the arms are swapped then.
    pub fn steps_of(&self, session: &PlannedSession) -> Vec<Step> {
        let mut steps = self.steps();
        if matches!(&self.protocol, Protocol::Paired { arms } if arms.first() != Some(&session.arm))
        {
            let hashes: BTreeMap<String, String> =
                self.warmups.iter().chain(&self.bodies).cloned().collect();
            for step in &mut steps {
                step.body = self.protocol.swapped(&step.body);
                step.sha256 = hashes.get(&step.body).cloned().unwrap_or_default();
            }
        }
        steps
    }

    /// Every request of a session, in the order of their indices.
    pub fn steps(&self) -> Vec<Step> {
        let all = self.warmups.iter().chain(&self.bodies);
        let hashes: BTreeMap<&str, &str> = all
            .map(|(name, hash)| (name.as_str(), hash.as_str()))
            .collect();
        let phases = self.phases();
        let requests = phases
            .iter()
            .flat_map(|phase| phase.requests.iter().map(move |r| (phase, r)));
        (0_u32..)
            .zip(requests)
            .map(|(index, (phase, request))| Step {
                index,
                phase: (!self.protocol.is_fresh()).then(|| phase.name.clone()),
                way: phase.way,
                scored: phase.scored,
                body: request.body.clone(),
                due_ns: request.due_ns,
                // A body replayed alone was sent before; a warm protocol's warm-ups are its own.
                may_be_cached: phase.name == ALONE
                    || (!phase.scored
                        && matches!(self.protocol, Protocol::Warm | Protocol::Paired { .. })),
                sha256: hashes
                    .get(request.body.as_str())
                    .map(|hash| (*hash).to_owned())
                    .unwrap_or_default(),
            })
            .collect()
    }
}
