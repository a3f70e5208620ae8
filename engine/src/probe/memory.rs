//! How fast memory is read.

use std::hint::black_box;
use std::time::Duration;

use super::passes::{Work, passes};
use super::{Figure, Host, ProbeError, Quantity};
use crate::kernels::Isa;
use crate::kernels::peak::{read_all, read_instructions};

const MIB: u64 = 1 << 20;
/// All threads' buffers together, in multiples of the last-level cache, and their bounds.
const CACHES: u64 = 16;
const LEAST: u64 = 256 * MIB;
const MOST: u64 = 2048 * MIB;
/// A thread reads this much in a pass: enough to be timed, and short enough that some passes go
/// undisturbed on a busy machine.
const PASS: usize = 64 << 20;
/// Where the cache's size is not shown.
const ASSUMED_CACHE: u64 = 64 * MIB;

/// Bytes of all buffers: far more than the caches hold, and at most a quarter of what is free.
pub(super) fn buffer_bytes(host: &Host) -> Result<u64, ProbeError> {
    let cache = host.last_level_cache_bytes.unwrap_or(ASSUMED_CACHE);
    let wanted = (CACHES * cache).clamp(LEAST, MOST);
    let Some(free) = host.free_memory_bytes else {
        return Ok(wanted);
    };
    let bytes = wanted.min(free / 4);
    if bytes < (4 * cache).min(LEAST) {
        return Err(ProbeError::NoMemory {
            needed_mib: 4 * (4 * cache).min(LEAST) / MIB,
            free_mib: free / MIB,
        });
    }
    Ok(bytes)
}

/// Reads with `threads` threads, each its own part, first touched by itself.
pub(super) fn dram(
    isa: Isa,
    threads: usize,
    bytes: u64,
    budget: Duration,
) -> Result<Figure, ProbeError> {
    let part = (bytes / threads as u64) as usize;
    let rates = passes(threads, budget, &|thread| {
        // Not zero: pages of zeros may be one and the same.
        let buffer = vec![thread as u8 | 1; part];
        let mut at = 0;
        let work: Work<'_> = Box::new(move || {
            // The next part of the buffer, so that a part comes again when all others have gone
            // through the cache.
            let next = &buffer[at..part.min(at + PASS)];
            at = if at + PASS < part { at + PASS } else { 0 };
            black_box(read_all(isa, next));
            Some(next.len() as u64)
        });
        Ok(work)
    })?;
    let how = format!(
        "{}, in order, {} MiB a thread",
        read_instructions(isa),
        part as u64 / MIB
    );
    Ok(Figure::new(Quantity::DramRead, threads, &rates, how))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cache: Option<u64>, free: Option<u64>) -> Host {
        Host {
            last_level_cache_bytes: cache,
            free_memory_bytes: free,
            ..Host::default()
        }
    }

    #[test]
    fn buffers_dwarf_the_cache_and_leave_memory_free() {
        let of = |cache: Option<u64>, free: Option<u64>| {
            buffer_bytes(&host(cache.map(|c| c * MIB), free.map(|f| f * MIB)))
                .map(|bytes| bytes / MIB)
        };
        assert_eq!(of(Some(32), Some(20_000)).unwrap(), 512);
        assert_eq!(of(Some(4), Some(20_000)).unwrap(), 256);
        assert_eq!(of(Some(512), None).unwrap(), 2048);
        assert_eq!(of(None, None).unwrap(), 1024);
        assert_eq!(of(Some(32), Some(1200)).unwrap(), 300);
        let error = of(Some(32), Some(400)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "512 MiB of free memory are needed to read past the caches and 400 MiB are free"
        );
    }
}
