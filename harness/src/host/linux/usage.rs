//! What the kernel counted for a process, and the files that it maps.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::server::ProcessUsage;

/// Reads a live process; all absent when it is gone.
pub(super) fn usage(pid: u32) -> ProcessUsage {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let field = |text: &str, key: &str| -> Option<u64> {
        text.lines()
            .find_map(|l| l.strip_prefix(key))?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    let stat = read("stat");
    // Fields after the program's name, which may hold spaces: state is the third of proc(5).
    let rest: Vec<u64> = stat
        .rsplit_once(')')
        .map(|(_, rest)| {
            rest.split_whitespace()
                .map(|f| f.parse().unwrap_or(0))
                .collect()
        })
        .unwrap_or_default();
    let at = |number: usize| rest.get(number - 3).copied();
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    ProcessUsage {
        peak_rss_bytes: field(&read("status"), "VmHWM:").map(|kib| kib * 1024),
        minor_faults: at(10),
        major_faults: at(12),
        user_ms: at(14).map(|t| t * 1000 / ticks),
        system_ms: at(15).map(|t| t * 1000 / ticks),
        read_bytes: field(&read("io"), "read_bytes:"),
    }
}

/// Files that a process maps as code, its own program excepted, and stores: copies that a server
/// makes of its model and reads instead (`NAME.store`).
pub(super) fn mapped_files(pid: u32) -> Vec<PathBuf> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    listed(&maps)
        .into_iter()
        .filter(|p| Some(p) != program.as_ref())
        .collect()
}

fn listed(maps: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for line in maps.lines() {
        let mut fields = line.splitn(6, ' ');
        let code = fields.nth(1).is_some_and(|flags| flags.contains('x'));
        let Some(path) = fields.nth(3).map(str::trim_start) else {
            continue;
        };
        let store = Path::new(path).extension().is_some_and(|e| e == "store");
        if (code || store) && path.starts_with('/') && !path.ends_with(" (deleted)") {
            found.insert(PathBuf::from(path));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_libraries() {
        let usage = usage(std::process::id());
        assert!(usage.peak_rss_bytes.is_some_and(|b| b > 100_000));
        assert!(usage.minor_faults.is_some_and(|n| n > 0));
        assert!(
            mapped_files(std::process::id())
                .iter()
                .any(|p| p.to_string_lossy().contains("libc"))
        );
        assert_eq!(super::usage(u32::MAX), ProcessUsage::default());
    }

    #[test]
    fn a_mapped_store_is_seen_and_other_data_is_not() {
        let maps = "7f0000000000-7f0000001000 r--s 00000000 fe:00 11    /s/my model.store\n\
                    7f0000002000-7f0000003000 r--s 00000000 fe:00 12    /s/m.data\n\
                    7f0000004000-7f0000005000 r-xp 00000000 fe:00 13    /lib/libc.so.6\n\
                    7f0000006000-7f0000007000 r--p 00000000 fe:00 13    /lib/libc.so.6\n\
                    7f0000008000-7f0000009000 r--s 00000000 fe:00 14    /s/gone.store (deleted)\n\
                    7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0     [stack]\n";
        let found: Vec<PathBuf> = listed(maps).into_iter().collect();
        assert_eq!(
            found,
            ["/lib/libc.so.6", "/s/my model.store"].map(PathBuf::from)
        );
    }
}
