//! Requests that wait for the model, first come first served.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use super::{EngineError, EngineStats, GenEvent, GenRequest};

/// Requests that may wait.
pub(super) const QUEUE_LIMIT: usize = 64;

/// A request and where its events go.
pub(super) struct Job {
    pub request: GenRequest,
    pub events: UnboundedSender<GenEvent>,
}

/// What callers and the model's thread share.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    stopping: bool,
    stats: EngineStats,
}

impl Queue {
    /// An empty one, in front of `slots` slots.
    pub fn new(slots: usize) -> Self {
        let mut state = State::default();
        state.stats.slots = vec![None; slots];
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// None of the guarded values can be left half-changed by a panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job at the end.
    pub fn push(&self, job: Job) -> Result<(), EngineError> {
        let mut state = self.lock();
        if state.stopping {
            return Err(EngineError::ShuttingDown);
        }
        state.drop_abandoned();
        if state.jobs.len() >= QUEUE_LIMIT {
            return Err(EngineError::QueueFull(state.jobs.len()));
        }
        state.jobs.push_back(job);
        self.changed.notify_one();
        Ok(())
    }

    /// The next job that anyone still wants; waits for one. `None` once the engine stops; the
    /// jobs that wait by then are told so. The job counts as running from here on.
    pub fn pop(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.stopping {
                for job in state.jobs.drain(..) {
                    // A caller that has gone needs no answer.
                    let _ = job.events.send(GenEvent::Failed(EngineError::ShuttingDown));
                }
                return None;
            }
            if let Some(job) = state.next() {
                return Some(job);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`Queue::pop`], without waiting: `None` also when no job waits.
    pub fn try_pop(&self) -> Option<Job> {
        let mut state = self.lock();
        if state.stopping {
            return None;
        }
        state.next()
    }

    /// Whether the engine is to stop.
    pub fn stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Makes the engine stop.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_all();
    }

    /// The counters.
    pub fn stats(&self) -> EngineStats {
        let state = self.lock();
        EngineStats {
            waiting: state.jobs.len(),
            ..state.stats.clone()
        }
    }

    /// Changes the counters.
    pub fn count(&self, change: impl FnOnce(&mut EngineStats)) {
        change(&mut self.lock().stats);
    }
}

impl State {
    fn next(&mut self) -> Option<Job> {
        self.drop_abandoned();
        let job = self.jobs.pop_front()?;
        self.stats.running += 1;
        Some(job)
    }

    /// Removes jobs whose callers have gone.
    fn drop_abandoned(&mut self) {
        let before = self.jobs.len();
        self.jobs.retain(|job| !job.events.is_closed());
        self.stats.cancelled += (before - self.jobs.len()) as u64;
    }
}
