//! How fast the kernels' instructions run out of registers.

use std::time::{Duration, Instant};

use super::passes::{Work, passes};
use super::{Figure, ProbeError, Quantity};
use crate::kernels::peak::PeakLoop;

/// A pass lasts about this long: some go undisturbed on a busy machine.
const PASS: Duration = Duration::from_millis(5);

/// Runs the loop on `threads` threads.
pub(super) fn peak(
    quantity: Quantity,
    peak: PeakLoop,
    threads: usize,
    budget: Duration,
) -> Result<Figure, ProbeError> {
    let rounds = rounds(&peak);
    let rates = passes(threads, budget, &|_| {
        let work: Work<'_> = Box::new(move || {
            peak.run(rounds);
            Some(rounds * peak.operations)
        });
        Ok(work)
    })?;
    Ok(Figure::new(quantity, threads, &rates, peak.instructions))
}

/// Rounds that take about a pass, found by doubling.
fn rounds(peak: &PeakLoop) -> u64 {
    let mut rounds = 1024;
    loop {
        let start = Instant::now();
        peak.run(rounds);
        if start.elapsed() * 2 >= PASS || rounds >= 1 << 40 {
            return rounds;
        }
        rounds *= 2;
    }
}
