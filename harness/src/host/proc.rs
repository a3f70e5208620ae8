//! Small readers of what Linux shows in `/proc` and `/sys`. What is not there is `None`.

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

/// Busy and total jiffies of all CPUs since boot.
pub(super) fn cpu_jiffies() -> Option<(u64, u64)> {
    parse_cpu(&text("/proc/stat")?)
}

fn parse_cpu(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal; guest times are inside user's.
    let parts: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|p| p.parse().ok())
        .collect();
    let total: u64 = parts.iter().sum();
    let idle = parts.get(3)? + parts.get(4).unwrap_or(&0);
    Some((total - idle, total))
}

/// One-minute load average.
pub(super) fn load1() -> Option<f64> {
    number("/proc/loadavg")
}

/// Logical CPUs that this process may run on.
pub(super) fn logical_cpus() -> Option<u32> {
    let cpus = std::thread::available_parallelism().ok()?;
    u32::try_from(cpus.get()).ok()
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
        assert_eq!(
            parse_cpu("cpu  10 0 5 80 5 0 0 0 3 0\ncpu0 1 1 1 1"),
            Some((15, 100))
        );
        assert_eq!(parse_cpu("cpu  10"), None);
    }
}
