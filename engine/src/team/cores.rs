//! How many threads are worth starting.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Physical cores that this process may use: hardware threads of one core count once, and the
/// affinity mask and cgroup quota (as the standard library reads them) cap the figure.
pub fn physical_cores() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    match count_cores(Path::new("/sys/devices/system/cpu")) {
        Some(cores) => cores.clamp(1, allowed),
        None => allowed,
    }
}

/// Distinct (package, core) pairs of the online processors under `root`, a sysfs `cpu` folder;
/// `None` where the topology is not shown.
fn count_cores(root: &Path) -> Option<usize> {
    let online = fs::read_to_string(root.join("online")).ok()?;
    let mut cores = BTreeSet::new();
    for cpu in parse_list(&online)? {
        let topology = root.join(format!("cpu{cpu}/topology"));
        let id = |name: &str| fs::read_to_string(topology.join(name)).ok();
        cores.insert((id("physical_package_id")?, id("core_id")?));
    }
    (!cores.is_empty()).then_some(cores.len())
}

/// The kernel's list format, such as `0-3,8`.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("x"), None);
    }

    #[test]
    fn hardware_threads_of_a_core_count_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("online"), "0-3\n").unwrap();
        for cpu in 0..4 {
            let topology = dir.path().join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("physical_package_id"), "0\n").unwrap();
            fs::write(topology.join("core_id"), format!("{}\n", cpu % 2)).unwrap();
        }
        assert_eq!(count_cores(dir.path()), Some(2));
        assert_eq!(count_cores(&dir.path().join("none")), None);
        assert!(physical_cores() >= 1);
    }
}
