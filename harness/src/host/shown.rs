//! What telemetry a machine does not show.

use super::HostSample;

type Shown = fn(&HostSample) -> bool;

/// What a sample may hold, in words.
const TELEMETRY: [(&str, Shown); 13] = [
    ("CPU use", |s| s.cpu_busy.is_some()),
    ("load", |s| s.load1.is_some()),
    ("pressure", |s| s.psi_cpu_some10.is_some()),
    ("available memory", |s| s.available_bytes.is_some()),
    ("disk reads", |s| s.disk_read_bytes.is_some()),
    ("CPU frequency", |s| s.cpu_mhz.is_some()),
    ("temperature", |s| s.celsius.is_some()),
    ("steal", |s| s.cpu_steal.is_some()),
    ("swapping", |s| s.swap_in_bytes.is_some()),
    ("thermal throttling", |s| s.thermal_throttles.is_some()),
    ("CPU limits", |s| s.cgroup_throttled_ns.is_some()),
    ("other processes", |s| s.others.is_some()),
    ("energy", |s| s.energy.is_some() || s.power.is_some()),
];

/// What none of some samples shows, in words. It takes two of them to see shares of CPU time and
/// other processes.
pub fn telemetry_not_shown(samples: &[&HostSample]) -> Vec<&'static str> {
    let unseen = TELEMETRY
        .iter()
        .filter(|(_, shown)| !samples.iter().any(|s| shown(s)));
    unseen.map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Machine, Portable};

    #[test]
    fn a_machine_that_shows_nothing_says_so_of_everything() {
        let nothing = Portable.telemetry().sample(true);
        assert_eq!(telemetry_not_shown(&[&nothing]).len(), TELEMETRY.len());
        let loaded = HostSample {
            load1: Some(0.0),
            ..HostSample::default()
        };
        let unseen = telemetry_not_shown(&[&nothing, &loaded]);
        assert_eq!(unseen.len(), TELEMETRY.len() - 1);
        assert!(!unseen.contains(&"load"));
    }
}
