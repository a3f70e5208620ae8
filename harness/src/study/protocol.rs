//! Protocols: how a session replays its bodies. A protocol and the bodies' names expand to the
//! exact requests of every session, known before anything starts.

use serde::{Deserialize, Serialize};
use toml::Spanned;

/// `protocol.kind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolKind {
    /// One request at a time, warm-ups first.
    #[default]
    Fresh,
    /// All bodies at once, each to its end.
    Cohort,
}

impl ProtocolKind {
    /// As in study files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Cohort => "cohort",
        }
    }
}

/// `[protocol]` as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolFile {
    /// How bodies are replayed.
    pub kind: Spanned<ProtocolKind>,
    /// `cohort`: how often each body is in it; 1 if absent.
    #[serde(default)]
    pub copies: Option<Spanned<u32>>,
    /// `cohort`: whether each body is replayed alone after it, unscored, to compare answers.
    #[serde(default)]
    pub compare_alone: Option<Spanned<bool>>,
}

/// How a session replays its bodies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Protocol {
    /// Warm-ups, then every body in file order, one at a time.
    #[default]
    Fresh,
    /// Warm-ups one at a time; then all bodies at once, each to its natural end.
    Cohort {
        /// How often each body is in the cohort.
        copies: u32,
        /// Whether each body is replayed alone afterwards, unscored.
        compare_alone: bool,
    },
}

/// What a request's time in its phase is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Each after the end of the one before.
    OneByOne,
    /// All at once.
    Together,
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
    /// `warm-up`, `replay`, `cohort`, `alone`.
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

/// Most requests in flight at once: each has a thread of the client.
pub(super) const MOST_AT_ONCE: usize = 1024;

impl ProtocolFile {
    /// The protocol, or the first key that is wrong: where and why. `bodies` is how many the
    /// workload lists.
    pub(super) fn resolve(
        &self,
        bodies: usize,
    ) -> Result<Protocol, (std::ops::Range<usize>, String)> {
        let kind = *self.kind.as_ref();
        let only = |span: std::ops::Range<usize>, key: &str, of: ProtocolKind| {
            let message = format!(
                "`{key}` is for protocols of kind {}; this one is {}",
                of.name(),
                kind.name()
            );
            Err((span, message))
        };
        if kind != ProtocolKind::Cohort {
            if let Some(copies) = &self.copies {
                return only(copies.span(), "copies", ProtocolKind::Cohort);
            }
            if let Some(alone) = &self.compare_alone {
                return only(alone.span(), "compare_alone", ProtocolKind::Cohort);
            }
        }
        match kind {
            ProtocolKind::Fresh => Ok(Protocol::Fresh),
            ProtocolKind::Cohort => {
                let copies = self.copies.as_ref().map_or(1, |c| *c.as_ref());
                let most = MOST_AT_ONCE / bodies.max(1);
                if copies == 0 || copies as usize > most {
                    let span = self.copies.as_ref().map_or(self.kind.span(), Spanned::span);
                    let message = format!(
                        "copies = {copies} of {bodies} bodies: a cohort has 1 to {MOST_AT_ONCE} requests, so give 1 to {most}"
                    );
                    return Err((span, message));
                }
                let compare_alone = self.compare_alone.as_ref().is_some_and(|c| *c.as_ref());
                Ok(Protocol::Cohort {
                    copies,
                    compare_alone,
                })
            }
        }
    }
}

impl Protocol {
    /// Whether it is the default, which archives before version 1.1 know alone.
    pub fn is_fresh(&self) -> bool {
        *self == Self::Fresh
    }

    /// What every session does, from the names of its bodies.
    pub fn phases(&self, warmups: &[String], bodies: &[String]) -> Vec<Phase> {
        let phase = |name: &str, way, scored, names: Vec<&String>| Phase {
            name: name.to_owned(),
            way,
            scored,
            requests: names
                .into_iter()
                .map(|body| PhaseRequest { body: body.clone() })
                .collect(),
        };
        let mut phases = Vec::new();
        if !warmups.is_empty() {
            let all = warmups.iter().collect();
            phases.push(phase("warm-up", Way::OneByOne, false, all));
        }
        let once = || bodies.iter().collect::<Vec<_>>();
        match self {
            Self::Fresh => phases.push(phase("replay", Way::OneByOne, true, once())),
            Self::Cohort {
                copies,
                compare_alone,
            } => {
                let all = (0..*copies).flat_map(|_| once()).collect();
                phases.push(phase("cohort", Way::Together, true, all));
                if *compare_alone {
                    phases.push(phase(ALONE, Way::OneByOne, false, once()));
                }
            }
        }
        phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cohort_is_all_bodies_then_each_alone() {
        let name = |n: &str| vec![format!("{n}1"), format!("{n}2")];
        let protocol = Protocol::Cohort {
            copies: 2,
            compare_alone: true,
        };
        let phases = protocol.phases(&name("w"), &name("b"));
        let told: Vec<(&str, Way, bool, String)> = phases
            .iter()
            .map(|p| {
                let bodies: Vec<&str> = p.requests.iter().map(|r| r.body.as_str()).collect();
                (p.name.as_str(), p.way, p.scored, bodies.join(" "))
            })
            .collect();
        assert_eq!(
            told,
            [
                ("warm-up", Way::OneByOne, false, "w1 w2".to_owned()),
                ("cohort", Way::Together, true, "b1 b2 b1 b2".to_owned()),
                ("alone", Way::OneByOne, false, "b1 b2".to_owned()),
            ]
        );
    }
}
