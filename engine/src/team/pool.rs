//! A fixed set of threads that run the pieces of one job after another.
//!
//! A job is open from the moment it is published until its caller has seen the piece counter
//! run out. A worker that arrives late finds the job closed and is not waited for, so a core
//! taken by a neighbour costs that core's share and no more.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::kernels::FpEnv;

/// Checks of the state before a waiting thread starts to yield, and yields before it sleeps.
const SPINS: u32 = 4000;
const YIELDS: u32 = 64;

/// `state`: workers inside the job in the low bits, then two flags, then the job's number.
const COUNT_MASK: u64 = 0xffff;
const CLOSED: u64 = 1 << 16;
const STOP: u64 = 1 << 17;
const EPOCH_SHIFT: u32 = 32;

type Job = *const (dyn Fn(usize) + Sync);

/// Worker threads plus the caller. Which thread runs which piece never changes a result.
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Holds the number of the last job; one caller at a time.
    turn: Mutex<u64>,
}

struct Shared {
    state: AtomicU64,
    next: AtomicUsize,
    pieces: AtomicUsize,
    job: UnsafeCell<Option<Job>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
}

// SAFETY: `job` is the only field that is not already Sync and Send. It is written only by the
// caller that holds `Team::turn` while the job is closed and no worker is inside (count 0), and
// read only by workers inside an open job; the release store that opens a job and the acquire
// operations that enter it order the two. What it points to is Sync.
unsafe impl Sync for Shared {}
// SAFETY: see above; the pointer is never used after `run` returns.
unsafe impl Send for Shared {}

impl Team {
    /// `threads` in all, the caller included (so 1 spawns none); 0 counts as 1. Where the system
    /// refuses a thread the team is smaller, and [`Team::threads`] says so.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(CLOSED),
            next: AtomicUsize::new(0),
            pieces: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            panic: Mutex::new(None),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        });
        let wanted = threads.clamp(1, COUNT_MASK as usize);
        let workers = (1..wanted)
            .map_while(|i| {
                let shared = Arc::clone(&shared);
                let worker = thread::Builder::new().name(format!("team-{i}"));
                worker.spawn(move || shared.work()).ok()
            })
            .collect();
        Self {
            shared,
            workers,
            turn: Mutex::new(0),
        }
    }

    /// Threads in all.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job(piece)` once for each piece in `0..pieces`; returns when all are done. A panic in
    /// a piece is re-raised here after the others have stopped; pieces not begun by then are
    /// skipped. Calls from several threads take turns; a job must not call its own team.
    pub fn run(&self, pieces: usize, job: &(dyn Fn(usize) + Sync)) {
        let _env = FpEnv::set_default();
        if self.workers.is_empty() || pieces <= 1 {
            (0..pieces).for_each(job);
            return;
        }
        let mut epoch = lock(&self.turn);
        *epoch += 1;
        let shared = &*self.shared;
        #[expect(
            clippy::transmute_ptr_to_ptr,
            reason = "`as` may not extend a lifetime"
        )]
        // SAFETY: only the lifetime changes. `run` does not return, nor unwind, before it has
        // closed the job and seen that no worker is inside, so the borrow outlives every use.
        let job: Job = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(std::ptr::from_ref(job))
        };
        // SAFETY: the job before is closed and empty, and `turn` is held: no other access exists.
        unsafe { *shared.job.get() = Some(job) };
        shared.pieces.store(pieces, Ordering::Relaxed);
        shared.next.store(0, Ordering::Relaxed);
        shared.state.store(*epoch << EPOCH_SHIFT, Ordering::SeqCst);
        shared.wake_sleepers();

        shared.run_pieces(job);
        shared.state.fetch_or(CLOSED, Ordering::SeqCst);
        shared.wait_until(|state| state & COUNT_MASK == 0);
        // SAFETY: closed and empty again, see above.
        unsafe { *shared.job.get() = None };
        let panic = lock(&shared.panic).take();
        drop(epoch);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.state.fetch_or(STOP, Ordering::SeqCst);
        self.shared.wake_sleepers();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its jobs, so joining cannot fail for those.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// A worker's life.
    fn work(&self) {
        let _env = FpEnv::set_default();
        let mut seen = 0;
        loop {
            let state =
                self.wait_until(|s| s & STOP != 0 || (s & CLOSED == 0 && s >> EPOCH_SHIFT != seen));
            if state & STOP != 0 {
                return;
            }
            let enter =
                self.state
                    .compare_exchange(state, state + 1, Ordering::SeqCst, Ordering::SeqCst);
            if enter.is_err() {
                continue;
            }
            seen = state >> EPOCH_SHIFT;
            // SAFETY: this worker is inside an open job, so the caller does not write the field.
            if let Some(job) = unsafe { *self.job.get() } {
                self.run_pieces(job);
            }
            let before = self.state.fetch_sub(1, Ordering::SeqCst);
            if before & COUNT_MASK == 1 && before & CLOSED != 0 {
                self.wake_sleepers();
            }
        }
    }

    /// Takes pieces until none is left. After a panic the remaining pieces are skipped.
    fn run_pieces(&self, job: Job) {
        let pieces = self.pieces.load(Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let piece = self.next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    break;
                }
                // SAFETY: called by the caller of `run`, or by a worker inside the open job; in
                // both cases the closure that `run` borrowed is alive.
                unsafe { (*job)(piece) };
            }
        }));
        if let Err(panic) = result {
            self.next.store(pieces, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(panic);
        }
    }

    /// Spins, then yields, then sleeps until the state is as wanted; returns that state.
    fn wait_until(&self, wanted: impl Fn(u64) -> bool) -> u64 {
        for round in 0..SPINS + YIELDS {
            let state = self.state.load(Ordering::SeqCst);
            if wanted(state) {
                return state;
            }
            if round < SPINS {
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        let mut guard = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let state = loop {
            let state = self.state.load(Ordering::SeqCst);
            if wanted(state) {
                break state;
            }
            guard = self
                .wake
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        state
    }

    /// After a change of `state`. A thread counts itself as a sleeper before its last look at the
    /// state, so either it sees the change or this sees the sleeper.
    fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _guard = lock(&self.sleep);
            self.wake.notify_all();
        }
    }
}

/// None of the guarded values can be left half-changed by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_runs_once() {
        for threads in [0, 1, 2, 3, 8] {
            let team = Team::new(threads);
            for pieces in [0, 1, 2, 7, 100] {
                let hits: Vec<AtomicUsize> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
                team.run(pieces, &|i| {
                    hits[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn many_short_jobs_and_pauses() {
        let team = Team::new(3);
        let total = AtomicUsize::new(0);
        for round in 0..5000 {
            if round % 1000 == 0 {
                thread::sleep(std::time::Duration::from_millis(3));
            }
            team.run(5, &|i| {
                total.fetch_add(i, Ordering::Relaxed);
            });
        }
        assert_eq!(total.load(Ordering::Relaxed), 5000 * 10);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_lives_on() {
        let team = Team::new(3);
        for _ in 0..50 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                team.run(20, &|i| assert!(i != 11, "piece eleven"));
            }));
            let message = caught.unwrap_err();
            assert_eq!(message.downcast_ref::<&str>(), Some(&"piece eleven"));
            let count = AtomicUsize::new(0);
            team.run(20, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(count.load(Ordering::Relaxed), 20);
        }
    }

    #[test]
    fn callers_take_turns() {
        let team = Team::new(2);
        let total = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        team.run(3, &|_| {
                            total.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.load(Ordering::Relaxed), 4 * 200 * 3);
    }
}
