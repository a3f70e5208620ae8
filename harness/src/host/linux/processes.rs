//! Which other processes use the CPUs.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::host::{OtherProcess, OtherProcesses, now_ns};

/// Least time between two scans.
const SCAN_EVERY: Duration = Duration::from_secs(1);
/// A scan may take at most this share of one core: with many processes, scans are rarer.
const SHARE_OF_A_CORE: u32 = 500;
/// How many are named.
const NAMED: usize = 3;
/// Less CPU time between two scans is not named.
const LEAST_MS: u64 = 20;

/// One line of `/proc/PID/stat`, as far as it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    name: String,
    parent: u32,
    group: u32,
    /// CPU time, user and system.
    ticks: u64,
    /// When it began: a process id may come again.
    began: u64,
}

/// Looks at all processes now and then, and says what others used in between.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    before: Option<(u64, BTreeMap<u32, Seen>)>,
    due: Option<Instant>,
}

impl Scanner {
    /// What other processes used since the last scan, if one is due (`last`: whether it is or
    /// not). Absent for the first one.
    pub(super) fn scan(&mut self, last: bool) -> Option<OtherProcesses> {
        let started = Instant::now();
        if self.due.is_some_and(|due| started < due) && !last {
            return None;
        }
        let ns = now_ns();
        let now = read_all()?;
        self.due = Some(started + SCAN_EVERY.max(started.elapsed() * SHARE_OF_A_CORE));
        let before = self.before.replace((ns, now))?;
        let (_, now) = self.before.as_ref()?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Some(others(
            &before.1,
            now,
            std::process::id(),
            per_second,
            before.0,
        ))
    }
}

fn read_all() -> Option<BTreeMap<u32, Seen>> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let all = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Some((pid, parse(&String::from_utf8_lossy(&stat))?))
    });
    Some(all.collect())
}

/// Fields by their numbers in proc(5); the name, in brackets, may hold anything.
fn parse(stat: &str) -> Option<Seen> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let at = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Seen {
        name: name.to_owned(),
        parent: at(4)? as u32,
        group: at(5)? as u32,
        ticks: at(14)? + at(15)?,
        began: at(22)?,
    })
}

/// Others are all but this process, its children, and the groups that its children lead.
fn others(
    before: &BTreeMap<u32, Seen>,
    now: &BTreeMap<u32, Seen>,
    own: u32,
    ticks_per_second: u64,
    since_ns: u64,
) -> OtherProcesses {
    let is_child = |pid: &u32, seen: &Seen| *pid == own || seen.parent == own;
    let leads = |group: u32| now.get(&group).is_some_and(|s| is_child(&group, s));
    let foreign = now
        .iter()
        .filter(|(pid, seen)| !is_child(pid, seen) && (seen.group == 0 || !leads(seen.group)));
    let mut used: Vec<OtherProcess> = foreign
        .filter_map(|(pid, seen)| {
            let earlier = before.get(pid).filter(|b| b.began == seen.began);
            // One that began since the last scan has used all its time since.
            let ticks = seen.ticks - earlier.map_or(0, |b| b.ticks.min(seen.ticks));
            (ticks > 0).then(|| OtherProcess {
                pid: *pid,
                name: seen.name.clone(),
                cpu_ms: ticks * 1000 / ticks_per_second,
            })
        })
        .collect();
    let cpu_ms = used.iter().map(|p| p.cpu_ms).sum();
    used.sort_by(|a, b| b.cpu_ms.cmp(&a.cpu_ms).then(a.pid.cmp(&b.pid)));
    used.retain(|p| p.cpu_ms >= LEAST_MS);
    used.truncate(NAMED);
    OtherProcesses {
        since_ns,
        cpu_ms,
        most: used,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, parent: u32, group: u32, ticks: u64, began: u64) -> Seen {
        Seen {
            name: name.to_owned(),
            parent,
            group,
            ticks,
            began,
        }
    }

    #[test]
    fn a_line_of_stat_is_read_whatever_the_name() {
        let line = "77 (a) b (c) R 1 70 70 0 -1 4194304 5 0 0 0 12 8 0 0 20 0 1 0 999 1 1";
        assert_eq!(parse(line), Some(seen("a) b (c", 1, 70, 20, 999)));
        assert_eq!(parse("77 (a"), None);
    }

    #[test]
    fn others_are_neither_this_process_nor_its_servers() {
        let own = 10;
        let before = BTreeMap::from([
            (10, seen("palindrome", 1, 10, 100, 1)),
            (20, seen("server", 10, 20, 100, 2)),
            (30, seen("rustc", 1, 30, 100, 3)),
            (40, seen("old", 1, 40, 500, 4)),
        ]);
        let now = BTreeMap::from([
            (10, seen("palindrome", 1, 10, 190, 1)),
            (20, seen("server", 10, 20, 290, 2)),
            (21, seen("helper", 20, 20, 50, 5)),
            (30, seen("rustc", 1, 30, 195, 3)),
            (31, seen("idle", 1, 30, 1, 3)),
            // The same id, another process.
            (40, seen("new", 1, 40, 30, 6)),
        ]);
        let found = others(&before, &now, own, 100, 77);
        assert_eq!((found.since_ns, found.cpu_ms), (77, 950 + 10 + 300));
        let most: Vec<(&str, u64)> = found
            .most
            .iter()
            .map(|p| (p.name.as_str(), p.cpu_ms))
            .collect();
        assert_eq!(most, [("rustc", 950), ("new", 300)]);
    }

    #[test]
    fn scans_are_rare_and_the_first_says_nothing() {
        let mut scanner = Scanner::default();
        assert_eq!(scanner.scan(false), None);
        assert_eq!(scanner.scan(false), None, "none is due so soon");
        assert!(scanner.scan(true).is_some());
    }
}
