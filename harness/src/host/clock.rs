//! The one clock of a study, and what this program itself costs.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`: absolute since boot, the same in every process of a machine,
/// never set back.
pub fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at 0, so neither part is negative.
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// CPU time that the calling thread has used so far, user and system, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
