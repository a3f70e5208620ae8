//! Pure: telemetry to findings.

use super::limits::Limits;
use super::sources::{Noise, NoiseKind};
use super::window::Window;
use crate::archive::{Facts, SessionFacts};
use crate::host::HostSample;
use crate::stats::median;
use crate::study::{Role, StudyFile};

/// How many processes are named a session.
const NAMED: usize = 3;
/// Shorter times between two looks tell no share of a core.
const SHORTEST_LOOK_NS: u64 = 500_000_000;
/// Samples that a statement on frequency needs.
const FEWEST_SAMPLES: usize = 8;

/// Everything that touched sessions; none of archives whose servers were not read back.
pub(in crate::derive) fn noise(facts: &Facts, study: Option<&StudyFile>) -> Vec<Noise> {
    let limits = Limits::DECLARED;
    let guard = study.and_then(|file| file.guards.min_free_ram_mb);
    let guard = guard.map(|mb| mb as f64 * 1e6);
    let share = facts
        .host
        .memory_bytes
        .map(|b| b as f64 * limits.free_memory);
    let detected = facts.sessions.iter().filter_map(|session| {
        session.readback.as_ref()?;
        let of = Of {
            facts,
            session,
            window: Window::of(session)?,
            limits,
            least_memory: guard.or(share),
        };
        Some(of.all())
    });
    detected.flatten().collect()
}

/// One session being looked at.
struct Of<'a> {
    facts: &'a Facts,
    session: &'a SessionFacts,
    window: Window,
    limits: Limits,
    least_memory: Option<f64>,
}

impl Of<'_> {
    fn all(&self) -> Vec<Noise> {
        let samples = self.window.samples(&self.session.samples);
        let mut out = self.processes();
        out.extend(self.memory(samples));
        out.extend(self.faults());
        out.extend(self.load(samples));
        out.extend(self.steal(samples));
        out.extend(self.swap());
        out.extend(self.thermal());
        out.extend(self.held_back());
        out.extend(self.frequency(samples));
        out
    }

    fn finding(
        &self,
        kind: NoiseKind,
        ns: Option<u64>,
        value: f64,
        limit: f64,
        words: String,
    ) -> Noise {
        let clock = self.session.readback.as_ref().map(|r| r.clock);
        Noise {
            session: self.session.name(),
            scored: self.session.planned.role == Role::Scored,
            kind,
            at: clock.zip(ns).map(|(clock, ns)| clock.time_of_day(ns)),
            value,
            limit,
            words,
        }
    }

    fn risen(&self, counter: fn(&HostSample) -> Option<u64>) -> Option<u64> {
        self.window.risen(&self.session.samples, counter)
    }

    /// Other processes that took a core, or a part of one all along.
    fn processes(&self) -> Vec<Noise> {
        struct Used<'a> {
            pid: u32,
            name: &'a str,
            ms: u64,
            since_ns: u64,
            core: f64,
        }
        let mut used: Vec<Used<'_>> = Vec::new();
        let looks = self
            .session
            .samples
            .iter()
            .filter_map(|s| Some((s.ns, s.others.as_ref()?)));
        let inside =
            looks.filter(|(ns, o)| *ns > self.window.from_ns && o.since_ns < self.window.to_ns);
        for (ns, others) in inside {
            let took_ns = ns.saturating_sub(others.since_ns);
            for process in &others.most {
                let core = if took_ns < SHORTEST_LOOK_NS {
                    0.0
                } else {
                    process.cpu_ms as f64 * 1e6 / took_ns as f64
                };
                let same = |u: &&mut Used<'_>| u.pid == process.pid && u.name == process.name;
                match used.iter_mut().find(same) {
                    Some(known) => {
                        known.ms += process.cpu_ms;
                        known.core = known.core.max(core);
                    }
                    None => used.push(Used {
                        pid: process.pid,
                        name: &process.name,
                        ms: process.cpu_ms,
                        since_ns: others.since_ns,
                        core,
                    }),
                }
            }
        }
        let mean = |u: &Used<'_>| u.ms as f64 / 1000.0 / self.window.seconds();
        used.retain(|u| {
            let long = mean(u) >= self.limits.other_mean && u.ms >= self.limits.other_ms;
            u.core >= self.limits.other_core || long
        });
        used.sort_by(|a, b| b.ms.cmp(&a.ms).then(a.pid.cmp(&b.pid)));
        used.truncate(NAMED);
        let named = used.iter().map(|u| {
            let (value, limit, how) = if u.core >= self.limits.other_core {
                (u.core, self.limits.other_core, "at most")
            } else {
                (mean(u), self.limits.other_mean, "on average")
            };
            let words = format!(
                "process {} (pid {}) used {:.1} s of CPU time, {how} {value:.2} of a core",
                u.name,
                u.pid,
                u.ms as f64 / 1000.0,
            );
            let since = Some(u.since_ns);
            self.finding(NoiseKind::OtherProcess, since, value, limit, words)
        });
        named.collect()
    }

    fn memory(&self, samples: &[HostSample]) -> Option<Noise> {
        let least = self.least_memory?;
        let shown = samples
            .iter()
            .filter_map(|s| Some((s.available_bytes?, s.ns)));
        let (bytes, ns) = shown.min()?;
        (bytes as f64 <= least).then(|| {
            let words = format!(
                "{} MB of memory were available, below {:.0}",
                bytes / 1_000_000,
                least / 1e6
            );
            self.finding(NoiseKind::Memory, Some(ns), bytes as f64, least, words)
        })
    }

    /// The same arm's other scored sessions.
    fn others(&self) -> impl Iterator<Item = &SessionFacts> {
        self.facts.sessions.iter().filter(|s| {
            s.planned.role == Role::Scored
                && s.planned.arm == self.session.planned.arm
                && s.planned.index != self.session.planned.index
        })
    }

    fn faults(&self) -> Option<Noise> {
        let faults = |s: &SessionFacts| s.end.stop.usage.major_faults.map(|n| n as f64);
        let own = faults(self.session)?;
        let others: Vec<f64> = self.others().filter_map(faults).collect();
        let usual = median(&others)?;
        let limit = (usual * self.limits.faults_times).max(usual + self.limits.faults_more);
        (own >= limit).then(|| {
            let times = if usual > 0.0 {
                format!(
                    "{:.0} times the median of its arm's other sessions",
                    own / usual
                )
            } else {
                "and its arm's other sessions had none, by their median".to_owned()
            };
            let words =
                format!("{own:.0} pages of the server came from disk (major faults), {times}");
            self.finding(NoiseKind::MajorFaults, None, own, limit, words)
        })
    }

    fn load(&self, samples: &[HostSample]) -> Option<Noise> {
        let cpus = f64::from(self.facts.host.logical_cpus?);
        let limit = cpus + self.limits.load_above;
        let shown = samples.iter().filter_map(|s| Some((s.load1?, s.ns)));
        let (load, ns) = shown.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        (load > limit).then(|| {
            let words = format!("the load reached {load:.1} on {cpus:.0} processors");
            self.finding(NoiseKind::Load, Some(ns), load, limit, words)
        })
    }

    fn steal(&self, samples: &[HostSample]) -> Option<Noise> {
        // A sample's share is that of the time before it.
        let shares: Vec<f64> = samples.iter().skip(1).filter_map(|s| s.cpu_steal).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        (!shares.is_empty() && mean >= self.limits.steal).then(|| {
            let words = format!(
                "the hypervisor gave {:.1}% of CPU time to others",
                mean * 100.0
            );
            self.finding(NoiseKind::Steal, None, mean, self.limits.steal, words)
        })
    }

    fn swap(&self) -> Option<Noise> {
        let came = self.risen(|s| s.swap_in_bytes);
        let went = self.risen(|s| s.swap_out_bytes);
        let bytes = came.unwrap_or(0) + went.unwrap_or(0);
        let limit = self.limits.swap_bytes;
        (bytes >= limit).then(|| {
            let mib = |b: Option<u64>| b.unwrap_or(0) as f64 / (1 << 20) as f64;
            let words = format!(
                "{:.1} MiB came from swap and {:.1} MiB went there",
                mib(came),
                mib(went)
            );
            self.finding(NoiseKind::Swap, None, bytes as f64, limit as f64, words)
        })
    }

    fn thermal(&self) -> Option<Noise> {
        let events = self.risen(|s| s.thermal_throttles).filter(|n| *n > 0)?;
        let words = format!("CPUs were throttled for heat {events} time(s)");
        Some(self.finding(NoiseKind::Thermal, None, events as f64, 1.0, words))
    }

    fn held_back(&self) -> Option<Noise> {
        let ns = self.risen(|s| s.cgroup_throttled_ns)?;
        let limit = self.limits.held_back_ns;
        (ns >= limit).then(|| {
            let words = format!(
                "a CPU limit of the group held work back for {:.2} s",
                ns as f64 / 1e9
            );
            self.finding(NoiseKind::HeldBack, None, ns as f64, limit as f64, words)
        })
    }

    /// Frequency while at least half of the CPUs were busy: against the session's own beginning, and
    /// against the other scored sessions of any arm.
    fn frequency(&self, samples: &[HostSample]) -> Option<Noise> {
        let own = busy_mhz(samples);
        let whole = median(&own)?;
        let quarter = own.len() / 4;
        let (first, last) = (median(&own[..quarter]), median(&own[own.len() - quarter..]));
        if let (Some(first), Some(last)) = (first, last)
            && last < first * self.limits.frequency
        {
            let limit = first * self.limits.frequency;
            let words = format!("the CPU's frequency fell from {first:.0} to {last:.0} MHz");
            return Some(self.finding(NoiseKind::Frequency, None, last, limit, words));
        }
        let others = self.facts.sessions.iter().filter(|s| {
            s.planned.role == Role::Scored && s.planned.index != self.session.planned.index
        });
        let others = others.filter_map(|s| {
            let window = Window::of(s)?;
            median(&busy_mhz(window.samples(&s.samples)))
        });
        let usual = median(&others.collect::<Vec<f64>>())?;
        let limit = usual * self.limits.frequency;
        (whole < limit).then(|| {
            let words = format!(
                "the CPU ran at {whole:.0} MHz, the other sessions at {usual:.0} (medians)"
            );
            self.finding(NoiseKind::Frequency, None, whole, limit, words)
        })
    }
}

/// Frequencies of busy samples; none where there are too few to say anything.
fn busy_mhz(samples: &[HostSample]) -> Vec<f64> {
    let busy = samples
        .iter()
        .filter(|s| s.cpu_busy.is_some_and(|b| b >= 0.5));
    let mhz: Vec<f64> = busy.filter_map(|s| s.cpu_mhz).collect();
    if mhz.len() < FEWEST_SAMPLES {
        Vec::new()
    } else {
        mhz
    }
}
