//! Protocols: how a session replays its bodies. A protocol and the bodies' names expand to the
//! exact requests of every session, known before anything starts.

use serde::{Deserialize, Serialize};

use super::coin::SplitMix64;
use super::switch::{arms_body, body_and_arm};

/// How a session replays its bodies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Protocol {
    /// Warm-ups, then every body in file order, one at a time.
    #[default]
    Fresh,
    /// The same; prompts of warm-ups may come from a cache, scored ones may not.
    Warm,
    /// Every body under the settings of both arms, one at a time on one server: A B, then B A, and so
    /// on in turn. A session that the plan gives to the second arm swaps the two.
    Paired {
        /// The two arms, in the study's order.
        arms: Vec<String>,
    },
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
    /// Warm-ups one at a time; then levels, one after the other: bodies in order, each at its
    /// scheduled time whether or not others are answered.
    OpenLoop {
        /// Requests a second of each level, on average.
        rates_rps: Vec<f64>,
        /// Requests of each level.
        requests: Vec<u32>,
        /// Seed of the arrival times.
        seed: u64,
        /// What a request must meet to count as good; absent where none is declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
        /// Position of the level that the study is about.
        primary_level: usize,
    },
    /// Warm-ups one at a time; then each body once, at the time at which it was recorded.
    Arrivals {
        /// From the start, one a body, ascending.
        times_ns: Vec<u64>,
        /// As in an open loop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
}

/// `[limits]`: what a request must meet to count as good, seconds. At least one is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Longest time to the first token, from the scheduled time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_s: Option<f64>,
    /// Longest time per output token after the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpot_s: Option<f64>,
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
    /// Each at its own time.
    Timed,
}

/// One request of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRequest {
    /// Body's file name in `workload/`.
    pub body: String,
    /// When it is to be sent, in nanoseconds from the start of its phase; absent where it is not
    /// timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ns: Option<u64>,
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

/// Name of the level whose requests go at recorded times.
const RECORDED: &str = "recorded";
/// Name of the phase in which a cohort's bodies are replayed alone.
pub const ALONE: &str = "alone";

impl Phase {
    fn new<'a>(
        name: &str,
        way: Way,
        scored: bool,
        bodies: impl IntoIterator<Item = &'a String>,
    ) -> Self {
        let request = |body: &String| PhaseRequest {
            body: body.clone(),
            due_ns: None,
        };
        Self {
            name: name.to_owned(),
            way,
            scored,
            requests: bodies.into_iter().map(request).collect(),
        }
    }
}

/// The scope of figures of something (`arm/A`) at a level; absent where there are no levels.
pub fn at_level(of: &str, level: Option<&str>) -> String {
    match level {
        Some(level) => format!("{of}/{level}"),
        None => of.to_owned(),
    }
}

/// A level's name in words, for a row of a table: `concurrency 4`.
pub fn level_title(name: &str) -> String {
    match name.split_at_checked(1) {
        _ if name == RECORDED => "recorded times".to_owned(),
        Some(("c", n)) => format!("concurrency {n}"),
        Some(("r", rate)) => format!("{rate} requests/s"),
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
        matches!(self, Self::Fresh | Self::Warm | Self::Paired { .. })
    }

    /// The names under which bodies are archived: of a paired study, each arm's own.
    pub fn archived(&self, bodies: &[String]) -> Vec<String> {
        let Self::Paired { arms } = self else {
            return bodies.to_vec();
        };
        let both = |body: &String| {
            let body = body.clone();
            arms.iter().map(move |arm| arms_body(&body, arm))
        };
        bodies.iter().flat_map(both).collect()
    }

    /// The arm whose settings a request of a paired study is for, by its body; absent in any other.
    pub fn arm_of<'a>(&self, body: &'a str) -> Option<&'a str> {
        match self {
            Self::Paired { .. } => body_and_arm(body).map(|(_, arm)| arm),
            _ => None,
        }
    }

    /// A body as the study names it, whichever arm's it is.
    pub fn without_arm(&self, body: &str) -> String {
        let known = self.arm_of(body).and_then(|_| body_and_arm(body));
        known.map_or_else(|| body.to_owned(), |(name, _)| name)
    }

    /// The body of a request where the arms of a paired study are swapped.
    pub(super) fn swapped(&self, body: &str) -> String {
        let Self::Paired { arms } = self else {
            return body.to_owned();
        };
        let swapped = body_and_arm(body).and_then(|(name, arm)| {
            let other = arms.iter().find(|a| *a != arm)?;
            Some(arms_body(&name, other))
        });
        swapped.unwrap_or_else(|| body.to_owned())
    }

    /// Names of its levels; empty where all scored requests are of one kind.
    pub fn levels(&self) -> Vec<String> {
        match self {
            Self::Fresh | Self::Warm | Self::Paired { .. } | Self::Cohort { .. } => Vec::new(),
            Self::ClosedLoop { concurrency, .. } => {
                concurrency.iter().map(|n| format!("c{n}")).collect()
            }
            Self::OpenLoop { rates_rps, .. } => {
                rates_rps.iter().map(|rate| format!("r{rate}")).collect()
            }
            Self::Arrivals { .. } => vec![RECORDED.to_owned()],
        }
    }

    /// What a request must meet to count as good; absent where nothing is declared.
    pub fn limits(&self) -> Option<&Limits> {
        match self {
            Self::OpenLoop { limits, .. } | Self::Arrivals { limits, .. } => limits.as_ref(),
            Self::Fresh
            | Self::Warm
            | Self::Paired { .. }
            | Self::Cohort { .. }
            | Self::ClosedLoop { .. } => None,
        }
    }

    /// Names of its levels, or one absent name where there are none: what figures stand at.
    pub fn places(&self) -> Vec<Option<String>> {
        match self.levels() {
            none if none.is_empty() => vec![None],
            levels => levels.into_iter().map(Some).collect(),
        }
    }

    /// Name of the level that the study is about; absent where there are none.
    pub fn primary_level(&self) -> Option<String> {
        match self {
            Self::Fresh | Self::Warm | Self::Paired { .. } | Self::Cohort { .. } => None,
            Self::ClosedLoop { primary_level, .. } | Self::OpenLoop { primary_level, .. } => {
                self.levels().get(*primary_level).cloned()
            }
            Self::Arrivals { .. } => Some(RECORDED.to_owned()),
        }
    }

    /// What every session does, from the names of its bodies.
    pub fn phases(&self, warmups: &[String], bodies: &[String]) -> Vec<Phase> {
        if let Self::Paired { arms } = self {
            return paired(arms, warmups, bodies);
        }
        let mut phases = Vec::new();
        if !warmups.is_empty() {
            phases.push(Phase::new("warm-up", Way::OneByOne, false, warmups));
        }
        match self {
            Self::Fresh | Self::Warm | Self::Paired { .. } => {
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
            Self::OpenLoop {
                rates_rps,
                requests,
                seed,
                ..
            } => {
                let levels = self.levels();
                for (nth, ((name, n), rate)) in
                    (0_u64..).zip(levels.iter().zip(requests).zip(rates_rps))
                {
                    let taken = bodies.iter().cycle().take(*n as usize);
                    let mut phase = Phase::new(name, Way::Timed, true, taken);
                    let times = arrivals(seed.wrapping_add(nth), *rate);
                    for (request, due_ns) in phase.requests.iter_mut().zip(times) {
                        request.due_ns = Some(due_ns);
                    }
                    phases.push(phase);
                }
            }
            Self::Arrivals { times_ns, .. } => {
                let mut phase = Phase::new(RECORDED, Way::Timed, true, bodies);
                for (request, due_ns) in phase.requests.iter_mut().zip(times_ns) {
                    request.due_ns = Some(*due_ns);
                }
                phases.push(phase);
            }
        }
        phases
    }
}

/// Warm-ups and bodies as they are archived, so each arm's own, in the turns of a session that the
/// first arm leads: A B B A A B B A ...
fn paired(arms: &[String], warmups: &[String], bodies: &[String]) -> Vec<Phase> {
    let in_turns = |all: &[String]| -> Vec<String> {
        let of_both = all.chunks(arms.len().max(1)).enumerate();
        of_both
            .flat_map(|(nth, both)| {
                let mut both = both.to_vec();
                if nth % 2 == 1 {
                    both.reverse();
                }
                both
            })
            .collect()
    };
    let mut phases = Vec::new();
    if !warmups.is_empty() {
        let all = in_turns(warmups);
        phases.push(Phase::new("warm-up", Way::OneByOne, false, &all));
    }
    let all = in_turns(bodies);
    phases.push(Phase::new("replay", Way::OneByOne, true, &all));
    phases
}

/// Times of a Poisson process, in nanoseconds from its start: gaps are exponential with a mean of
/// 1/rate seconds.
fn arrivals(seed: u64, rate_rps: f64) -> impl Iterator<Item = u64> {
    let mut random = SplitMix64::new(seed);
    let mut at = 0.0;
    std::iter::repeat_with(move || {
        at += -libm::log(1.0 - random.unit()) / rate_rps * 1e9;
        at as u64
    })
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
    fn a_paired_session_sends_each_body_under_both_settings_in_turns() {
        let arms = vec!["x".to_owned(), "y".to_owned()];
        let protocol = Protocol::Paired { arms };
        let names = ["a.json", "b.json", "c.json"].map(str::to_owned);
        let archived = protocol.archived(&names);
        assert_eq!(archived[..2], ["a.x.json", "a.y.json"]);
        let phases = protocol.phases(&[], &archived);
        let bodies: Vec<&str> = phases[0].requests.iter().map(|r| r.body.as_str()).collect();
        let expected = "a.x.json a.y.json b.y.json b.x.json c.x.json c.y.json";
        assert_eq!(bodies.join(" "), expected);
        assert_eq!(protocol.arm_of("b.y.json"), Some("y"));
        assert_eq!(protocol.without_arm("b.y.json"), "b.json");
        assert_eq!(protocol.swapped("b.y.json"), "b.x.json");
        assert_eq!(Protocol::Warm.swapped("b.y.json"), "b.y.json");
    }

    #[test]
    fn arrivals_are_a_poisson_process_of_the_seed() {
        let times = |seed, rate| arrivals(seed, rate).take(20_000).collect::<Vec<u64>>();
        let all = times(7, 4.0);
        assert_eq!(all, times(7, 4.0));
        assert_ne!(all[..5], times(8, 4.0)[..5]);
        assert!(all.windows(2).all(|w| w[0] <= w[1]));
        // 20000 arrivals at 4 a second take 5000 s, give or take 0.7% (one deviation).
        let seconds = all[19_999] as f64 / 1e9;
        assert!((4_850.0..5_150.0).contains(&seconds), "{seconds}");
        // Gaps are exponential: as many deviations as means, and 1/e of them above the mean.
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e9).collect();
        let above = gaps.iter().filter(|gap| **gap > 0.25).count() as f64 / gaps.len() as f64;
        assert!((above - 0.3679).abs() < 0.015, "{above}");
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
