//! `[protocol]` as it is written, and what it means.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use toml::Spanned;

use super::file::{ArmFile, ExpectCached, WorkloadFile};
use super::protocol::{Limits, Protocol};
use crate::replay::MOST_AT_ONCE;

/// Most requests of a level.
const MOST_REQUESTS: u32 = 100_000;
/// Requests a second.
const RATES_RPS: RangeInclusive<f64> = 0.001..=10_000.0;

/// Ten days.
const LONGEST_S: f64 = 864_000.0;
/// How many times faster than recorded.
const SPEEDS: RangeInclusive<f64> = 0.001..=1000.0;

/// `protocol.kind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolKind {
    /// One request at a time, warm-ups first.
    #[default]
    Fresh,
    /// The same, with warm-ups that must be there and scored prompts that must be cold.
    Warm,
    /// Both arms on one server, each body under the settings of one and then the other.
    Paired,
    /// All bodies at once, each to its end.
    Cohort,
    /// A number of workers, each sending its next request when its last one is answered.
    ClosedLoop,
    /// Each request at its scheduled time.
    OpenLoop,
    /// Each body when it was recorded to come.
    Arrivals,
}

impl ProtocolKind {
    /// As in study files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Warm => "warm",
            Self::Paired => "paired",
            Self::Cohort => "cohort",
            Self::ClosedLoop => "closed-loop",
            Self::OpenLoop => "open-loop",
            Self::Arrivals => "arrivals",
        }
    }
}

/// One number for all levels, or one a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EachLevel {
    /// The same for all.
    Same(u32),
    /// In the order of the levels.
    Each(Vec<u32>),
}

impl<'de> Deserialize<'de> for EachLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = EachLevel;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, or a list of them with one a level")
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<EachLevel, E> {
                let whole = u32::try_from(value);
                whole
                    .map(EachLevel::Same)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(value), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<EachLevel, A::Error> {
                let mut all = Vec::new();
                while let Some(value) = seq.next_element()? {
                    all.push(value);
                }
                Ok(EachLevel::Each(all))
            }
        }
        deserializer.deserialize_any(Numbers)
    }
}

/// `[protocol]`.
#[derive(Clone, Debug, serde::Deserialize)]
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
    /// `closed-loop`: workers, one number a level.
    #[serde(default)]
    pub concurrency: Option<Spanned<Vec<u32>>>,
    /// `open-loop`: requests a second on average, one number a level.
    #[serde(default)]
    pub rates_rps: Option<Spanned<Vec<f64>>>,
    /// `open-loop`: seed of the arrival times; 1 if absent.
    #[serde(default)]
    pub seed: Option<Spanned<u64>>,
    /// `arrivals`: when each body came, seconds from the start, ascending.
    #[serde(default)]
    pub arrivals_s: Option<Spanned<Vec<f64>>>,
    /// `arrivals`: how many times faster than recorded; 1 if absent.
    #[serde(default)]
    pub speed: Option<Spanned<f64>>,
    /// Loops: requests of each level.
    #[serde(default)]
    pub requests: Option<Spanned<EachLevel>>,
    /// Loops: the level that verdict and gate are about; the last if absent.
    #[serde(default)]
    pub primary_level: Option<Spanned<f64>>,
}

/// What is wrong, and where.
type Wrong = (Range<usize>, String);

impl ProtocolFile {
    /// The protocol, or the first key that is wrong.
    pub(super) fn resolve(
        &self,
        workload: &WorkloadFile,
        limits: Option<&Spanned<Limits>>,
        arms: &[ArmFile],
    ) -> Result<Protocol, Wrong> {
        use ProtocolKind::{Arrivals, ClosedLoop, Cohort, OpenLoop};
        let loops = &[ClosedLoop, OpenLoop];
        self.only("copies", self.copies.as_ref(), &[Cohort])?;
        self.only("compare_alone", self.compare_alone.as_ref(), &[Cohort])?;
        self.only("concurrency", self.concurrency.as_ref(), &[ClosedLoop])?;
        self.only("rates_rps", self.rates_rps.as_ref(), &[OpenLoop])?;
        self.only("seed", self.seed.as_ref(), &[OpenLoop])?;
        self.only("arrivals_s", self.arrivals_s.as_ref(), &[Arrivals])?;
        self.only("speed", self.speed.as_ref(), &[Arrivals])?;
        self.only("requests", self.requests.as_ref(), loops)?;
        self.only("primary_level", self.primary_level.as_ref(), loops)?;
        self.only("[limits]", limits, &[OpenLoop, Arrivals])?;
        match self.kind.as_ref() {
            ProtocolKind::Fresh => Ok(Protocol::Fresh),
            ProtocolKind::Warm => self.warm(workload),
            ProtocolKind::Paired => self.paired(arms),
            Cohort => self.cohort(workload.bodies.as_ref().len()),
            ClosedLoop => self.closed_loop(),
            OpenLoop => self.open_loop(limits),
            Arrivals => self.arrivals(workload.bodies.as_ref().len(), limits),
        }
    }

    /// Refuses a key that is for other kinds.
    fn only<T>(
        &self,
        key: &str,
        value: Option<&Spanned<T>>,
        of: &[ProtocolKind],
    ) -> Result<(), Wrong> {
        let kind = *self.kind.as_ref();
        let Some(value) = value.filter(|_| !of.contains(&kind)) else {
            return Ok(());
        };
        let of: Vec<&str> = of.iter().map(|kind| kind.name()).collect();
        let message = format!(
            "`{key}` is for protocols of kind {}; this one is {}",
            of.join(" or "),
            kind.name()
        );
        Err((value.span(), message))
    }

    fn warm(&self, workload: &WorkloadFile) -> Result<Protocol, Wrong> {
        let bad = |what: &str| Err((self.kind.span(), what.to_owned()));
        if workload.warmups.is_empty() {
            return bad("a warm protocol has warm-ups: give `warmups = [...]` in [workload]");
        }
        if workload.expect_cached != ExpectCached::None {
            return bad(
                "a warm protocol checks that no scored prompt comes from a cache, and lets warm-ups do as they like: \
                 leave `expect_cached` out",
            );
        }
        Ok(Protocol::Warm)
    }

    fn paired(&self, arms: &[ArmFile]) -> Result<Protocol, Wrong> {
        if arms.len() != 2 {
            let message = format!(
                "a paired protocol has two arms; this study has {}",
                arms.len()
            );
            return Err((self.kind.span(), message));
        }
        for arm in arms {
            let Some(switch) = &arm.switch else {
                let message = format!(
                    "arm {:?} has no `switch`: a paired protocol switches one server between its arms, by fields of the \
                     request (`switch = {{ fields = {{ ... }} }}`) or by a call (`switch = {{ post = \"/path\", json = \
                     {{ ... }} }}`)",
                    arm.name.as_ref()
                );
                return Err((arm.name.span(), message));
            };
            let resolved = switch.as_ref().resolve();
            resolved.map_err(|what| (switch.span(), what))?;
        }
        Ok(Protocol::Paired {
            arms: arms.iter().map(|arm| arm.name.as_ref().clone()).collect(),
        })
    }

    fn cohort(&self, bodies: usize) -> Result<Protocol, Wrong> {
        let copies = self.copies.as_ref().map_or(1, |c| *c.as_ref());
        let most = MOST_AT_ONCE / bodies.max(1);
        if copies == 0 || copies as usize > most {
            let written = self.copies.as_ref();
            let span = written.map_or(self.kind.span(), Spanned::span);
            let message = format!(
                "copies = {copies} of {bodies} bodies: a cohort has 1 to {MOST_AT_ONCE} requests, so give 1 to {most}"
            );
            return Err((span, message));
        }
        Ok(Protocol::Cohort {
            copies,
            compare_alone: self.compare_alone.as_ref().is_some_and(|c| *c.as_ref()),
        })
    }

    /// What a loop cannot be without.
    fn needed<'a, T>(
        &self,
        key: &str,
        value: Option<&'a Spanned<T>>,
        such: &str,
    ) -> Result<&'a Spanned<T>, Wrong> {
        value.ok_or_else(|| {
            let kind = self.kind.as_ref().name();
            let message = format!("kind {kind} needs `{key}`, such as `{key} = {such}`");
            (self.kind.span(), message)
        })
    }

    fn closed_loop(&self) -> Result<Protocol, Wrong> {
        let such = "[1, 4, 16]";
        let written = self.needed("concurrency", self.concurrency.as_ref(), such)?;
        let concurrency = written.as_ref().clone();
        let levels: Vec<f64> = concurrency.iter().map(|n| f64::from(*n)).collect();
        distinct("concurrency", written.span(), &levels, such)?;
        let out = |n: &&u32| **n == 0 || **n as usize > MOST_AT_ONCE;
        if let Some(n) = concurrency.iter().find(out) {
            let message = format!("concurrency {n} is out of range: give 1 to {MOST_AT_ONCE}");
            return Err((written.span(), message));
        }
        let written = self.needed("requests", self.requests.as_ref(), "64")?;
        let requests = each_level(written, concurrency.len())?;
        for (n, workers) in requests.iter().zip(&concurrency) {
            if n < workers {
                let message = format!(
                    "requests = {n} at concurrency {workers}: a level has at least one request a worker"
                );
                return Err((written.span(), message));
            }
        }
        Ok(Protocol::ClosedLoop {
            primary_level: self.primary_level(&levels)?,
            concurrency,
            requests,
        })
    }

    fn open_loop(&self, limits: Option<&Spanned<Limits>>) -> Result<Protocol, Wrong> {
        let such = "[0.5, 1, 2]";
        let written = self.needed("rates_rps", self.rates_rps.as_ref(), such)?;
        let rates_rps = written.as_ref().clone();
        distinct("rates_rps", written.span(), &rates_rps, such)?;
        if let Some(rate) = rates_rps.iter().find(|rate| !RATES_RPS.contains(*rate)) {
            let message = format!(
                "a rate of {rate} requests a second is out of range: give {} to {}",
                RATES_RPS.start(),
                RATES_RPS.end()
            );
            return Err((written.span(), message));
        }
        let requests = self.needed("requests", self.requests.as_ref(), "64")?;
        let requests = each_level(requests, rates_rps.len())?;
        check_limits(limits)?;
        Ok(Protocol::OpenLoop {
            primary_level: self.primary_level(&rates_rps)?,
            rates_rps,
            requests,
            seed: self.seed.as_ref().map_or(1, |seed| *seed.as_ref()),
            limits: limits.map(|limits| *limits.as_ref()),
        })
    }

    fn arrivals(&self, bodies: usize, limits: Option<&Spanned<Limits>>) -> Result<Protocol, Wrong> {
        let such = "[0, 0.5, 2.25]";
        let written = self.needed("arrivals_s", self.arrivals_s.as_ref(), such)?;
        let times = written.as_ref();
        let bad = |message: String| Err((written.span(), message));
        if times.len() != bodies {
            return bad(format!(
                "arrivals_s has {} times for {bodies} bodies: give one a body, in their order",
                times.len()
            ));
        }
        if let Some(time) = times.iter().find(|time| !(0.0..=LONGEST_S).contains(*time)) {
            return bad(format!(
                "a time of {time} s is out of range: give 0 to {LONGEST_S}"
            ));
        }
        if !times.is_sorted() {
            return bad(
                "arrivals_s goes back in time: give ascending times, and the bodies in their order"
                    .into(),
            );
        }
        let speed = self.speed.as_ref().map_or(1.0, |speed| *speed.as_ref());
        if !SPEEDS.contains(&speed) {
            let span = self.speed.as_ref().map_or(self.kind.span(), Spanned::span);
            let message = format!(
                "speed = {speed} is out of range: give {} to {}",
                SPEEDS.start(),
                SPEEDS.end()
            );
            return Err((span, message));
        }
        check_limits(limits)?;
        Ok(Protocol::Arrivals {
            times_ns: times
                .iter()
                .map(|s| (s / speed * 1e9).round() as u64)
                .collect(),
            limits: limits.map(|limits| *limits.as_ref()),
        })
    }

    /// The position of the level that the study is about.
    fn primary_level(&self, levels: &[f64]) -> Result<usize, Wrong> {
        let Some(written) = &self.primary_level else {
            return Ok(levels.len() - 1);
        };
        let found = levels.iter().position(|level| level == written.as_ref());
        found.ok_or_else(|| {
            let known: Vec<String> = levels.iter().map(ToString::to_string).collect();
            let message = format!(
                "primary_level = {} is no level; give one of {}",
                written.as_ref(),
                known.join(", ")
            );
            (written.span(), message)
        })
    }
}

/// Refuses limits of which none is given, or one is no time.
fn check_limits(limits: Option<&Spanned<Limits>>) -> Result<(), Wrong> {
    let Some(limits) = limits else {
        return Ok(());
    };
    let given = limits.as_ref();
    let all = [("ttft_s", given.ttft_s), ("tpot_s", given.tpot_s)];
    if all.iter().all(|(_, limit)| limit.is_none()) {
        let message = "no limit is given: give `ttft_s`, `tpot_s`, or both, in seconds";
        return Err((limits.span(), message.to_owned()));
    }
    let out = |limit: f64| !(limit > 0.0 && limit <= LONGEST_S);
    let wrong = all.iter().find(|(_, limit)| limit.is_some_and(out));
    if let Some((key, Some(limit))) = wrong {
        let message =
            format!("limits.{key} = {limit} is out of range: give more than 0, up to {LONGEST_S}");
        return Err((limits.span(), message));
    }
    Ok(())
}

/// So many numbers, from one for all or one a level.
fn each_level(written: &Spanned<EachLevel>, levels: usize) -> Result<Vec<u32>, Wrong> {
    let all = match written.as_ref() {
        EachLevel::Same(n) => vec![*n; levels],
        EachLevel::Each(all) => all.clone(),
    };
    if all.len() != levels {
        let message = format!(
            "requests has {} numbers for {levels} levels: give one a level, or one number for all",
            all.len()
        );
        return Err((written.span(), message));
    }
    if let Some(n) = all.iter().find(|n| **n == 0 || **n > MOST_REQUESTS) {
        let message = format!("requests = {n} is out of range: give 1 to {MOST_REQUESTS}");
        return Err((written.span(), message));
    }
    Ok(all)
}

/// Refuses levels that are none, or that stand twice.
fn distinct(key: &str, span: Range<usize>, levels: &[f64], such: &str) -> Result<(), Wrong> {
    let apart = |(i, level): (usize, &f64)| !levels[..i].contains(level);
    if levels.is_empty() || !levels.iter().enumerate().all(apart) {
        let message = format!("{key} lists its levels, each once, such as {such}");
        return Err((span, message));
    }
    Ok(())
}
