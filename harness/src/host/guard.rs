//! Guards: a session starts on a machine that is fit for it, or not at all.

use std::time::{Duration, Instant};

use super::clock::now_ns;
use super::machine::machine;
use crate::study::Guards;

/// What the guards look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// `MemAvailable`.
    pub available_bytes: Option<u64>,
    /// One-minute load.
    pub load1: Option<f64>,
    /// Logical CPUs that this process may run on.
    pub logical_cpus: Option<u32>,
    /// PSI `some avg10` of the CPU, percent.
    pub psi_cpu_some10: Option<f64>,
    /// PSI `some avg10` of memory, percent.
    pub psi_memory_some10: Option<f64>,
    /// Inference servers that run: name and process id.
    pub servers: Vec<(String, u32)>,
}

impl Readings {
    /// Reads this machine.
    pub fn take() -> Self {
        machine().readings()
    }

    /// Other work that would slow a study started now: more waiting to run than there are
    /// processors. Advice in one line; no bound of a study, and no reason to refuse.
    pub fn other_work(&self) -> Option<String> {
        let (load, cpus) = self.load1.zip(self.logical_cpus)?;
        (load > f64::from(cpus)).then(|| {
            format!(
                "the load is {load:.1} on {cpus} processor(s): figures taken now will show it; stop what else runs, and \
                 wait a minute (a build that just ended counts too)"
            )
        })
    }
}

/// Why the machine is not fit.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GuardError {
    /// Still unfit after the wait.
    #[error("the host is not fit for a session after {waited_s} s: {}", .reasons.join("; "))]
    Refused {
        /// Everything that was out of bounds at the last look.
        reasons: Vec<String>,
        /// How long it was watched.
        waited_s: u64,
    },
    /// The clock went backwards.
    #[error("the monotonic clock went backwards; no time from this machine can be trusted")]
    Clock,
    /// Interrupted while waiting.
    #[error("interrupted while waiting for the host to settle")]
    Cancelled,
}

/// Everything that is out of bounds. A bound on something that the machine does not show (no PSI,
/// say) is out of bounds too: it cannot be promised.
pub fn violations(guards: &Guards, seen: &Readings) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut at_most = |what: &str, limit: Option<f64>, seen: Option<f64>| match (limit, seen) {
        (Some(limit), Some(seen)) if seen > limit => {
            reasons.push(format!("{what} is {seen:.2}, the study allows {limit}"));
        }
        (Some(limit), None) => reasons.push(format!(
            "{what} is not shown by this machine, the study allows {limit}"
        )),
        _ => {}
    };
    at_most("one-minute load", guards.max_load, seen.load1);
    at_most(
        "CPU pressure (some avg10)",
        guards.max_psi_cpu_some10,
        seen.psi_cpu_some10,
    );
    at_most(
        "memory pressure (some avg10)",
        guards.max_psi_memory_some10,
        seen.psi_memory_some10,
    );
    if let Some(least) = guards.min_free_ram_mb {
        match seen.available_bytes.map(|b| b / 1_000_000) {
            Some(free) if free >= least => {}
            Some(free) => reasons.push(format!(
                "{free} MB of memory are available, the study needs {least}"
            )),
            None => reasons.push(format!(
                "available memory is not shown by this machine, the study needs {least} MB"
            )),
        }
    }
    if !guards.allow_other_servers {
        for (name, pid) in &seen.servers {
            reasons.push(format!(
                "another inference server runs: {name} (process {pid})"
            ));
        }
    }
    reasons
}

/// Looks until the machine is fit, at most `guards.wait_s` long. `look` reads the machine,
/// `waiting` hears each change of reasons, `cancelled` is asked between looks.
pub fn wait_until_fit(
    guards: &Guards,
    mut look: impl FnMut() -> Readings,
    mut waiting: impl FnMut(&[String]),
    cancelled: impl Fn() -> bool,
) -> Result<Readings, GuardError> {
    let started = Instant::now();
    let limit = Duration::from_secs_f64(guards.wait_s);
    let mut said = Vec::new();
    let mut last = now_ns();
    loop {
        if cancelled() {
            return Err(GuardError::Cancelled);
        }
        let now = now_ns();
        if now < last {
            return Err(GuardError::Clock);
        }
        last = now;
        let seen = look();
        let reasons = violations(guards, &seen);
        if reasons.is_empty() {
            return Ok(seen);
        }
        if started.elapsed() >= limit {
            return Err(GuardError::Refused {
                reasons,
                waited_s: started.elapsed().as_secs(),
            });
        }
        if reasons != said {
            waiting(&reasons);
            said = reasons;
        }
        std::thread::sleep(Duration::from_millis(250).min(limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_work_is_more_than_the_processors_can_do() {
        let at = |load1, logical_cpus| Readings {
            load1,
            logical_cpus,
            ..Readings::default()
        };
        let said = at(Some(3.44), Some(2)).other_work().unwrap();
        assert!(
            said.starts_with("the load is 3.4 on 2 processor(s)"),
            "{said}"
        );
        assert_eq!(at(Some(2.0), Some(2)).other_work(), None);
        assert_eq!(at(Some(9.0), None).other_work(), None);
        assert_eq!(at(None, Some(2)).other_work(), None);
    }
}
