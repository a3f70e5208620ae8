//! Small readers of what is in `/proc` and `/sys`. What is not there is `None`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A file's text, trimmed; absent where it cannot be read.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|t| t.trim().to_owned())
}

/// A file's first number.
pub(super) fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.split_whitespace().next()?.parse().ok()
}

/// `/proc/meminfo` in bytes, by key.
pub(super) fn meminfo() -> BTreeMap<String, u64> {
    text("/proc/meminfo")
        .unwrap_or_default()
        .lines()
        .filter_map(|line| {
            let (key, rest) = line.split_once(':')?;
            let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
            Some((key.to_owned(), kib * 1024))
        })
        .collect()
}

/// `some avg10` of `/proc/pressure/<what>`, percent.
pub(super) fn pressure_some10(what: &str) -> Option<f64> {
    parse_some10(&text(format!("/proc/pressure/{what}"))?)
}

fn parse_some10(pressure: &str) -> Option<f64> {
    let some = pressure.lines().find_map(|l| l.strip_prefix("some "))?;
    some.split_whitespace()
        .find_map(|f| f.strip_prefix("avg10="))?
        .parse()
        .ok()
}

/// Time of all CPUs since boot, in jiffies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuTime {
    busy: u64,
    steal: u64,
    total: u64,
}

/// Shares of CPU time between two readings, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CpuShares {
    /// Not idle.
    pub(super) busy: f64,
    /// Wanted here, and given to another guest by the hypervisor.
    pub(super) steal: f64,
}

impl CpuTime {
    /// Shares since an earlier reading; absent where no time has passed.
    pub(super) fn since(self, before: Self) -> Option<CpuShares> {
        let total = self.total.checked_sub(before.total).filter(|t| *t > 0)? as f64;
        Some(CpuShares {
            busy: self.busy.saturating_sub(before.busy) as f64 / total,
            steal: self.steal.saturating_sub(before.steal) as f64 / total,
        })
    }
}

/// `/proc/stat`'s line of all CPUs.
pub(super) fn cpu_time() -> Option<CpuTime> {
    parse_cpu(&text("/proc/stat")?)
}

fn parse_cpu(stat: &str) -> Option<CpuTime> {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal; guest times are inside user's.
    let parts: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|p| p.parse().ok())
        .collect();
    let total: u64 = parts.iter().sum();
    let idle = parts.get(3)? + parts.get(4).unwrap_or(&0);
    Some(CpuTime {
        busy: total - idle,
        steal: parts.get(7).copied().unwrap_or(0),
        total,
    })
}

/// One-minute load average.
pub(super) fn load1() -> Option<f64> {
    number("/proc/loadavg")
}

/// Counters of `/proc/vmstat`, by name.
pub(super) fn vmstat() -> BTreeMap<String, u64> {
    text("/proc/vmstat")
        .unwrap_or_default()
        .lines()
        .filter_map(|l| {
            let (key, value) = l.split_once(' ')?;
            Some((key.to_owned(), value.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_and_cpu_lines() {
        let text = "some avg10=1.25 avg60=0.50 avg300=0.10 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0";
        assert_eq!(parse_some10(text), Some(1.25));
        assert_eq!(parse_some10("full avg10=1.0"), None);
        let first = parse_cpu("cpu  10 0 5 80 5 0 0 0 3 0\ncpu0 1 1 1 1").unwrap();
        assert_eq!((first.busy, first.steal, first.total), (15, 0, 100));
        let second = parse_cpu("cpu  20 0 5 150 5 0 0 20 3 0").unwrap();
        let shares = second.since(first).unwrap();
        assert_eq!((shares.busy, shares.steal), (0.3, 0.2));
        assert_eq!(first.since(first), None);
        assert_eq!(parse_cpu("cpu  10"), None);
    }
}
