//! Where Linux shows that the machine, or a limit on this group of processes, held work back.

use std::fs;
use std::path::{Path, PathBuf};

use super::proc::{number, text};

/// Counters of thermal throttling events, those of cores and of packages: looked for once, because a
/// large machine has hundreds.
#[derive(Debug)]
pub(super) struct ThermalEvents(Vec<PathBuf>);

impl Default for ThermalEvents {
    fn default() -> Self {
        Self::below(Path::new("/sys/devices/system/cpu"))
    }
}

impl ThermalEvents {
    fn below(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_cpu = |name: &str| {
            let number = name.strip_prefix("cpu").unwrap_or_default();
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        };
        let cpus = entries.filter(|e| is_cpu(&e.file_name().to_string_lossy()));
        let files = cpus.flat_map(|cpu| {
            let folder = cpu.path().join("thermal_throttle");
            ["core_throttle_count", "package_throttle_count"].map(|name| folder.join(name))
        });
        Self(files.filter(|file| file.is_file()).collect())
    }

    /// Events of all CPUs since boot; absent where nothing counts them.
    pub(super) fn count(&self) -> Option<u64> {
        let counts = self.0.iter().filter_map(number::<u64>);
        counts.reduce(|a, b| a + b)
    }
}

/// Time that this process's group was held back by a CPU limit, in nanoseconds since it was made.
pub(super) fn cgroup_throttled_ns() -> Option<u64> {
    let groups = text("/proc/self/cgroup")?;
    candidates(&groups)
        .into_iter()
        .find_map(|file| throttled_ns(&text(file)?))
}

/// Where `cpu.stat` of the groups in `/proc/self/cgroup` may lie: version 2, then 1. In a container
/// the group's own folder is the root of what is mounted.
fn candidates(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let path = path.trim_end_matches('/');
        let roots: &[&str] = if controllers.is_empty() {
            &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        } else if controllers.split(',').any(|c| c == "cpu") {
            &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        } else {
            continue;
        };
        for root in roots {
            files.push(format!("{root}{path}/cpu.stat"));
            files.push(format!("{root}/cpu.stat"));
        }
    }
    files
}

/// `throttled_usec` (version 2) or `throttled_time` in nanoseconds (version 1).
fn throttled_ns(stat: &str) -> Option<u64> {
    let field = |key: &str| -> Option<u64> {
        let line = stat.lines().find_map(|l| l.strip_prefix(key))?;
        line.trim().parse().ok()
    };
    field("throttled_usec ")
        .map(|us| us * 1000)
        .or_else(|| field("throttled_time "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_the_groups_are_read() {
        let v1 = "nr_periods 4\nnr_throttled 2\nthrottled_time 1500\n";
        let v2 = "usage_usec 9\nnr_throttled 1\nthrottled_usec 7\n";
        assert_eq!(throttled_ns(v1), Some(1500));
        assert_eq!(throttled_ns(v2), Some(7000));
        assert_eq!(throttled_ns("usage_usec 9\n"), None);
        let files = candidates("2:cpu,cpuacct:/a\n4:memory:/b\n0::/c\n");
        assert!(files.contains(&"/sys/fs/cgroup/cpu/a/cpu.stat".to_owned()));
        assert!(files.contains(&"/sys/fs/cgroup/c/cpu.stat".to_owned()));
        assert!(files.iter().all(|f| !f.contains("/b/")));
    }

    #[test]
    fn events_of_all_cpus_are_summed() {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, core, package) in [("cpu0", "3", "1"), ("cpu1", "4", "0")] {
            let place = folder.path().join(cpu).join("thermal_throttle");
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("core_throttle_count"), core).unwrap();
            fs::write(place.join("package_throttle_count"), package).unwrap();
        }
        fs::create_dir_all(folder.path().join("cpufreq")).unwrap();
        assert_eq!(ThermalEvents::below(folder.path()).count(), Some(8));
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(ThermalEvents::below(empty.path()).count(), None);
    }
}
