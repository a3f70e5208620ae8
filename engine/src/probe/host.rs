//! The machine, and what else it was doing.

use std::path::Path;

use crate::memory::available_bytes;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// What a reader needs to know of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The processor's name, where the system shows it.
    pub cpu: Option<String>,
    /// Processors that this process may use.
    pub processors: usize,
    /// Size of the last-level cache, where the system shows it.
    pub last_level_cache_bytes: Option<u64>,
    /// Memory that is free or can be freed at once, where the system shows it.
    pub free_memory_bytes: Option<u64>,
}

impl Host {
    /// Looks at this machine.
    pub fn look() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        Self {
            cpu: read("/proc/cpuinfo").and_then(|text| field(&text, "model name")),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            last_level_cache_bytes: last_level_cache(Path::new(
                "/sys/devices/system/cpu/cpu0/cache",
            )),
            free_memory_bytes: available_bytes(),
        }
    }
}

/// The value of the first line `NAME : VALUE`.
fn field(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

/// The largest cache under `root`, a processor's `cache` folder in sysfs.
fn last_level_cache(root: &Path) -> Option<u64> {
    let sizes = std::fs::read_dir(root).ok()?.flatten().filter_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join("size")).ok()?;
        let text = text.trim();
        let (number, unit) = match text.strip_suffix('K') {
            Some(number) => (number, 1 << 10),
            None => (text.strip_suffix('M')?, 1 << 20),
        };
        Some(number.parse::<u64>().ok()? * unit)
    });
    sizes.max()
}

/// Processors' worth of work between two looks at the kernel's counters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Processors' worth of work by other processes (and, under a hypervisor, by other guests).
    /// The kernel counts in hundredths of a second.
    pub other_processors: f64,
}

/// A look at the counters, to tell what others do meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct LoadMeter {
    at: Instant,
    machine_ticks: u64,
    own_ticks: u64,
}

/// The kernel's clock ticks a second towards programs (`USER_HZ`, the same on every Linux).
const TICKS: f64 = 100.0;

impl LoadMeter {
    /// Looks now; `None` where there are no such counters.
    pub fn start() -> Option<Self> {
        let machine = std::fs::read_to_string("/proc/stat").ok()?;
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        Some(Self {
            at: Instant::now(),
            machine_ticks: machine_ticks(&machine)?,
            own_ticks: own_ticks(&own)?,
        })
    }

    /// The work of others since `start`.
    pub fn stop(self) -> Option<Load> {
        let now = Self::start()?;
        let seconds = (now.at - self.at).as_secs_f64();
        let machine = now.machine_ticks.checked_sub(self.machine_ticks)?;
        let own = now.own_ticks.checked_sub(self.own_ticks)?;
        let others = machine.saturating_sub(own) as f64 / TICKS;
        (seconds > 0.0).then_some(Load {
            other_processors: others / seconds,
        })
    }
}

/// Ticks of all processors at work: user, nice, system, irq, softirq and steal of the first line
/// of `/proc/stat` (proc(5)); idle and waiting for disks are not work.
fn machine_ticks(stat: &str) -> Option<u64> {
    let fields: Vec<u64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let at = |i: usize| fields.get(i).copied();
    Some(at(0)? + at(1)? + at(2)? + at(5)? + at(6)? + at(7)?)
}

/// `utime` and `stime`, fields 14 and 15 of `/proc/self/stat`; fields count from the last bracket.
fn own_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_fields_are_read() {
        let stat = "cpu  100 20 30 4000 500 6 7 8 9 10\ncpu0 1 2 3\n";
        assert_eq!(machine_ticks(stat), Some(100 + 20 + 30 + 6 + 7 + 8));
        assert_eq!(machine_ticks("intr 1"), None);
        let own = "7 (a b) c) S 1 7 7 0 -1 4194304 1234 5678 91 2 33 44 5 6 20 0 1 0 9 0 0";
        assert_eq!(own_ticks(own), Some(77));
        let info = "processor\t: 0\nmodel name\t: Some CPU @ 3: fast\n";
        assert_eq!(
            field(info, "model name").as_deref(),
            Some("Some CPU @ 3: fast")
        );
        assert_eq!(field(info, "model"), None);
    }

    #[test]
    fn the_largest_cache_is_the_last_level() {
        let folder = tempfile::tempdir().unwrap();
        for (i, size) in ["32K", "512K\n", "32M"].iter().enumerate() {
            let index = folder.path().join(format!("index{i}"));
            std::fs::create_dir(&index).unwrap();
            std::fs::write(index.join("size"), size).unwrap();
        }
        assert_eq!(last_level_cache(folder.path()), Some(32 << 20));
        assert_eq!(last_level_cache(&folder.path().join("none")), None);
        assert!(Host::look().processors >= 1);
    }
}
