//! Entering a mapping's pages into the page table ahead of their first use.
//!
//! A weight's first use would otherwise wait for a page fault every few pages, which costs about
//! as much as reading the weights does.

use std::sync::Arc;
use std::thread;

use memmap2::Mmap;

use crate::memory::available_bytes;

/// Bytes entered at a time.
#[cfg(target_os = "linux")]
const STEP: usize = 64 << 20;

/// Starts a thread that goes through the mappings once and ends; none where memory is too short
/// for all of them, or the system has no such request.
pub(super) fn populate(maps: Vec<Arc<Mmap>>) {
    let bytes: u64 = maps.iter().map(|map| map.len() as u64).sum();
    if available_bytes().is_none_or(|available| bytes > available) {
        return;
    }
    let worker = thread::Builder::new().name("populate".to_owned());
    // It only saves time: without the thread, faults do the same.
    drop(worker.spawn(move || maps.iter().for_each(|map| enter(map))));
}

#[cfg(target_os = "linux")]
fn enter(map: &Mmap) {
    for start in (0..map.len()).step_by(STEP) {
        let len = STEP.min(map.len() - start);
        let done = map.advise_range(memmap2::Advice::PopulateRead, start, len);
        if done.is_err() {
            return; // Kernels before 5.14 do not know the request.
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn enter(_: &Mmap) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;

    /// Pages of this process that are entered, of the file at `path`, in KiB.
    fn resident(path: &std::path::Path) -> u64 {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = text
            .lines()
            .skip_while(|line| !line.ends_with(path.to_str().unwrap()));
        let rss = lines.find(|line| line.starts_with("Rss:")).unwrap();
        rss.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn every_page_is_entered() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![1u8; 3 << 20]).unwrap();
        let (map, _) = crate::formats::gguf::file::map(file.path()).unwrap();
        assert_eq!(resident(file.path()), 0);
        enter(&map);
        assert_eq!(resident(file.path()), 3 << 10);
    }
}
