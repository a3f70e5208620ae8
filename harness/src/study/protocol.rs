//! Protocols: how a session replays its bodies. A protocol and the bodies' names expand to the
//! exact requests of every session, known before anything starts.

use serde::{Deserialize, Serialize};

/// How a session replays its bodies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Protocol {
    /// Warm-ups, then every body in file order, one at a time.
    #[default]
    Fresh,
    /// The same; prompts of warm-ups may come from a cache, scored ones may not.
    Warm,
    /// Warm-ups one at a time; then all bodies at once, each to its natural end.
    Cohort {
        /// How often each body is in the cohort.
        copies: u32,
        /// Whether each body is replayed alone afterwards, unscored.
        compare_alone: bool,
    },
    /// Warm-ups one at a time; then levels, one after the other: workers take bodies in order,
    /// each its next one when its last one is answered.
    ClosedLoop {
        /// Workers of each level.
        concurrency: Vec<u32>,
        /// Requests of each level.
        requests: Vec<u32>,
        /// Position of the level that the study is about.
        primary_level: usize,
    },
}

/// How the requests of a phase are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Each after the end of the one before.
    OneByOne,
    /// All at once.
    Together,
    /// By so many workers.
    Workers(u32),
}

/// One request of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRequest {
    /// Body's file name in `workload/`.
    pub body: String,
}

/// A part of every session, begun when the one before it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// `warm-up`, `replay`, `cohort`, `alone`, or a level's name.
    pub name: String,
    /// How its requests are sent.
    pub way: Way,
    /// Whether its requests count.
    pub scored: bool,
    /// In order.
    pub requests: Vec<PhaseRequest>,
}

/// Name of the phase in which a cohort's bodies are replayed alone.
pub const ALONE: &str = "alone";

impl Phase {
    fn new<'a>(
        name: &str,
        way: Way,
        scored: bool,
        bodies: impl IntoIterator<Item = &'a String>,
    ) -> Self {
        let request = |body: &String| PhaseRequest { body: body.clone() };
        Self {
            name: name.to_owned(),
            way,
            scored,
            requests: bodies.into_iter().map(request).collect(),
        }
    }
}

/// A level's name in words, for a row of a table: `concurrency 4`.
pub fn level_title(name: &str) -> String {
    match name.split_at_checked(1) {
        Some(("c", n)) => format!("concurrency {n}"),
        _ => name.to_owned(),
    }
}

impl Protocol {
    /// Whether it is the default, which archives before version 1.1 know alone.
    pub fn is_fresh(&self) -> bool {
        *self == Self::Fresh
    }

    /// Whether scored requests go one at a time.
    pub fn is_sequential(&self) -> bool {
        matches!(self, Self::Fresh | Self::Warm)
    }

    /// Names of its levels; empty where all scored requests are of one kind.
    pub fn levels(&self) -> Vec<String> {
        match self {
            Self::Fresh | Self::Warm | Self::Cohort { .. } => Vec::new(),
            Self::ClosedLoop { concurrency, .. } => {
                concurrency.iter().map(|n| format!("c{n}")).collect()
            }
        }
    }

    /// Name of the level that the study is about; absent where there are none.
    pub fn primary_level(&self) -> Option<String> {
        match self {
            Self::Fresh | Self::Warm | Self::Cohort { .. } => None,
            Self::ClosedLoop { primary_level, .. } => self.levels().get(*primary_level).cloned(),
        }
    }

    /// What every session does, from the names of its bodies.
    pub fn phases(&self, warmups: &[String], bodies: &[String]) -> Vec<Phase> {
        let mut phases = Vec::new();
        if !warmups.is_empty() {
            phases.push(Phase::new("warm-up", Way::OneByOne, false, warmups));
        }
        match self {
            Self::Fresh | Self::Warm => {
                phases.push(Phase::new("replay", Way::OneByOne, true, bodies));
            }
            Self::Cohort {
                copies,
                compare_alone,
            } => {
                let all = (0..*copies).flat_map(|_| bodies);
                phases.push(Phase::new("cohort", Way::Together, true, all));
                if *compare_alone {
                    phases.push(Phase::new(ALONE, Way::OneByOne, false, bodies));
                }
            }
            Self::ClosedLoop {
                concurrency,
                requests,
                ..
            } => {
                for ((name, n), workers) in self.levels().iter().zip(requests).zip(concurrency) {
                    // Each level starts over, so that levels do the same work.
                    let taken = bodies.iter().cycle().take(*n as usize);
                    phases.push(Phase::new(name, Way::Workers(*workers), true, taken));
                }
            }
        }
        phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(protocol: &Protocol) -> Vec<String> {
        let names = |n: &str| vec![format!("{n}1"), format!("{n}2")];
        let phases = protocol.phases(&names("w"), &names("b"));
        let line = |p: &Phase| {
            let bodies: Vec<&str> = p.requests.iter().map(|r| r.body.as_str()).collect();
            format!("{} {:?} {} {}", p.name, p.way, p.scored, bodies.join(" "))
        };
        phases.iter().map(line).collect()
    }

    #[test]
    fn a_cohort_is_all_bodies_then_each_alone() {
        let protocol = Protocol::Cohort {
            copies: 2,
            compare_alone: true,
        };
        assert_eq!(
            told(&protocol),
            [
                "warm-up OneByOne false w1 w2",
                "cohort Together true b1 b2 b1 b2",
                "alone OneByOne false b1 b2"
            ]
        );
    }

    #[test]
    fn levels_of_a_loop_each_start_with_the_first_body() {
        let protocol = Protocol::ClosedLoop {
            concurrency: vec![1, 3],
            requests: vec![1, 5],
            primary_level: 0,
        };
        assert_eq!(
            told(&protocol),
            [
                "warm-up OneByOne false w1 w2",
                "c1 Workers(1) true b1",
                "c3 Workers(3) true b1 b2 b1 b2 b1"
            ]
        );
        assert_eq!(protocol.primary_level().as_deref(), Some("c1"));
    }
}
