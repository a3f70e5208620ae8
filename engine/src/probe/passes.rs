//! Timed passes: all threads start together, and a pass lasts from the first start to the last
//! end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ProbeError;
use crate::kernels::FpEnv;

/// Passes that are always made.
const LEAST_PASSES: usize = 3;

/// What a thread did in a pass, in the unit of the measurement; `None` ends the measurement, and
/// the pass does not count.
pub(super) type Work<'a> = Box<dyn FnMut() -> Option<u64> + Send + 'a>;

/// Runs a worker a thread, pass after pass, until `budget` is spent (at least three times), and
/// returns each pass's rate in units a second. `prepare` makes a thread's worker on that thread,
/// untimed.
pub(super) fn passes<'a>(
    threads: usize,
    budget: Duration,
    prepare: &(dyn Fn(usize) -> Result<Work<'a>, ProbeError> + Sync),
) -> Result<Vec<f64>, ProbeError> {
    let barrier = Barrier::new(threads);
    let stop = AtomicBool::new(false);
    // Of the pass under way: units, first start, last end.
    let tally: Mutex<Vec<(u64, Instant, Instant)>> = Mutex::new(Vec::new());
    let rates = Mutex::new(Vec::new());
    let failure = Mutex::new(None);
    let run = |thread: usize| {
        let _env = FpEnv::set_default();
        let mut work = match prepare(thread) {
            Ok(work) => Some(work),
            Err(error) => {
                lock(&failure).get_or_insert(error);
                stop.store(true, Ordering::SeqCst);
                None
            }
        };
        barrier.wait();
        let began = Instant::now();
        while !stop.load(Ordering::SeqCst) {
            // All threads have seen that the measurement goes on.
            barrier.wait();
            let start = Instant::now();
            let done = work.as_mut().and_then(|work| work());
            let end = Instant::now();
            match done {
                Some(units) => lock(&tally).push((units, start, end)),
                None => stop.store(true, Ordering::SeqCst),
            }
            barrier.wait();
            if thread == 0 {
                let pass = std::mem::take(&mut *lock(&tally));
                if pass.len() == threads {
                    let mut rates = lock(&rates);
                    rates.extend(rate(&pass));
                    if rates.len() >= LEAST_PASSES && began.elapsed() >= budget {
                        stop.store(true, Ordering::SeqCst);
                    }
                }
            }
            // Nobody looks at `stop` before the first thread has decided.
            barrier.wait();
        }
    };
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let run = &run;
            scope.spawn(move || run(thread));
        }
        run(0);
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(rates.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Units of all threads over the time from the first start to the last end.
fn rate(pass: &[(u64, Instant, Instant)]) -> Option<f64> {
    let units: u64 = pass.iter().map(|p| p.0).sum();
    let start = pass.iter().map(|p| p.1).min()?;
    let end = pass.iter().map(|p| p.2).max()?;
    let seconds = (end - start).as_secs_f64();
    (seconds > 0.0).then(|| units as f64 / seconds)
}

/// None of the guarded values can be left half-changed by a panic.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_thread_works_in_every_pass() {
        for threads in [1, 3] {
            let calls = AtomicUsize::new(0);
            let rates = passes(threads, Duration::ZERO, &|_| {
                Ok(Box::new(|| {
                    calls.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(1));
                    Some(10)
                }))
            })
            .unwrap();
            assert_eq!(rates.len(), LEAST_PASSES);
            assert_eq!(calls.load(Ordering::SeqCst), LEAST_PASSES * threads);
            let most = 10.0 * threads as f64 / 0.001;
            assert!(
                rates.iter().all(|rate| *rate > 0.0 && *rate <= most),
                "{rates:?}"
            );
        }
    }

    #[test]
    fn a_pass_that_somebody_cannot_make_does_not_count() {
        let rates = passes(2, Duration::from_secs(100), &|thread| {
            let mut left = 2 + thread;
            Ok(Box::new(move || {
                left = left.checked_sub(1)?;
                std::thread::sleep(Duration::from_millis(1));
                Some(1)
            }))
        })
        .unwrap();
        assert_eq!(rates.len(), 2);
    }

    #[test]
    fn a_thread_that_cannot_begin_ends_it() {
        let error = passes(2, Duration::from_secs(100), &|thread| match thread {
            0 => Ok(Box::new(|| Some(1))),
            _ => Err(ProbeError::NoMemory {
                needed_mib: 2,
                free_mib: 1,
            }),
        });
        assert!(matches!(error, Err(ProbeError::NoMemory { .. })));
    }
}
