//! Any system: what the standard library shows, and nothing that would be a guess.

use std::path::PathBuf;

use super::clock::now_ns;
use super::machine::{Machine, Telemetry};
use super::process::ProcessFacts;
use super::{HostFacts, HostSample, Readings, logical_cpus};
use crate::server::ProcessUsage;

/// A system of which only the common part is known. It is compiled and tested everywhere, and used
/// where there is nothing better.
#[derive(Debug)]
pub struct Portable;

impl Machine for Portable {
    fn describe(&self) -> HostFacts {
        HostFacts {
            os: Some(std::env::consts::OS.to_owned()),
            arch: std::env::consts::ARCH.to_owned(),
            logical_cpus: logical_cpus(),
            ..HostFacts::default()
        }
    }

    fn readings(&self) -> Readings {
        Readings {
            logical_cpus: logical_cpus(),
            ..Readings::default()
        }
    }

    fn telemetry(&self) -> Box<dyn Telemetry> {
        Box::new(OnlyTime)
    }

    fn usage(&self, _pid: u32) -> ProcessUsage {
        ProcessUsage::default()
    }

    fn process(&self, _pid: u32) -> ProcessFacts {
        ProcessFacts {
            taken_ns: now_ns(),
            ..ProcessFacts::default()
        }
    }

    fn libraries(&self, _pid: u32) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Samples that hold their time alone.
struct OnlyTime;

impl Telemetry for OnlyTime {
    fn sample(&mut self, _last: bool) -> HostSample {
        HostSample {
            ns: now_ns(),
            ..HostSample::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::violations;
    use crate::study::Guards;

    #[test]
    fn what_is_not_shown_is_absent_and_named_and_never_zero() {
        let facts = Portable.describe();
        assert!(facts.logical_cpus.is_some_and(|n| n > 0));
        let missing = facts.not_shown();
        for name in ["kernel", "memory_bytes", "governor", "cpu_flags"] {
            assert!(missing.contains(&name.to_owned()), "{missing:?}");
        }
        assert!(!missing.contains(&"os".to_owned()));
        let mut telemetry = Portable.telemetry();
        let (first, last) = (telemetry.sample(false), telemetry.sample(true));
        assert!(last.ns >= first.ns);
        let shown = serde_json::to_value(&last).unwrap();
        let values = shown.as_object().unwrap().iter();
        let shown: Vec<&str> = values
            .filter(|(_, v)| !v.is_null())
            .map(|(k, _)| k.as_str())
            .collect();
        assert_eq!(shown, ["ns"]);
        assert_eq!(Portable.usage(std::process::id()), ProcessUsage::default());
        assert_eq!(Portable.process(std::process::id()).threads, None);
    }

    #[test]
    fn a_bound_that_this_machine_cannot_show_refuses_to_promise_it() {
        let guards = Guards {
            max_load: Some(1.0),
            min_free_ram_mb: Some(1),
            ..Guards::default()
        };
        let reasons = violations(&guards, &Portable.readings());
        assert_eq!(
            reasons,
            [
                "one-minute load is not shown by this machine, the study allows 1",
                "available memory is not shown by this machine, the study needs 1 MB",
            ]
        );
    }
}
