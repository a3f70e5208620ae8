//! Continuous batching: pass after pass over whatever requests there are.
//!
//! Before each pass, requests that nobody wants any more leave, and waiting ones take the free
//! slots in order of arrival. A pass holds the next token of every request that decodes, and
//! tokens of the prompts in progress up to a budget (`share`): so a long prompt never holds up
//! decoding by more than a block, and decoding never holds up prompts. Company changes no bit of
//! an answer (`LoadedModel::forward_batch`), so nothing here can.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::EngineError;
use super::pool::{Pool, positions};
use super::queue::{Job, Queue};
use super::running::{End, Running};
use super::share::{prompt_budget, share};
use crate::kv::KvCache;
use crate::model::{ForwardError, LoadedModel, ScreenCounts, Segment};

/// What the scheduler needs of a model.
pub(super) trait Forward {
    /// Context in tokens.
    fn n_ctx(&self) -> usize;
    /// Prompt tokens in a pass.
    fn block(&self) -> usize;
    /// An empty cache for one sequence.
    fn new_cache(&self) -> KvCache;
    /// As [`LoadedModel::forward_batch`].
    fn forward_batch(&self, segments: &mut [Segment<'_>]) -> Vec<Result<Vec<f32>, ForwardError>>;
    /// As [`LoadedModel::screened`].
    fn screened(&self) -> ScreenCounts {
        ScreenCounts::default()
    }
    /// Runs `job` for each item, on as many threads as passes take.
    fn each<T: Send>(&self, items: &mut [T], job: impl Fn(&mut T) + Sync);
}

impl Forward for LoadedModel {
    fn n_ctx(&self) -> usize {
        LoadedModel::n_ctx(self)
    }
    fn block(&self) -> usize {
        LoadedModel::block(self)
    }
    fn new_cache(&self) -> KvCache {
        LoadedModel::new_cache(self)
    }
    fn forward_batch(&self, segments: &mut [Segment<'_>]) -> Vec<Result<Vec<f32>, ForwardError>> {
        LoadedModel::forward_batch(self, segments)
    }
    fn screened(&self) -> ScreenCounts {
        LoadedModel::screened(self)
    }
    fn each<T: Send>(&self, items: &mut [T], job: impl Fn(&mut T) + Sync) {
        self.team()
            .for_chunks(items, 1, |_, item| item.iter_mut().for_each(&job));
    }
}

/// The requests in the slots, and the sequences kept for later ones.
pub(super) struct Scheduler<'a, M> {
    model: &'a M,
    queue: &'a Queue,
    pool: Pool,
    slots: usize,
    /// In order of arrival.
    running: Vec<Running>,
    #[cfg(any(debug_assertions, feature = "planted"))]
    planted: super::planted::Planted,
}

impl<'a, M: Forward> Scheduler<'a, M> {
    /// Works on as many requests at once as the queue has slots.
    pub fn new(model: &'a M, queue: &'a Queue) -> Self {
        let slots = queue.stats().slots.len();
        Self {
            model,
            queue,
            pool: Pool::new(model.n_ctx(), slots),
            slots,
            running: Vec::new(),
            #[cfg(any(debug_assertions, feature = "planted"))]
            planted: super::planted::Planted::from_environment(),
        }
    }

    /// Works until the engine stops.
    pub fn run(mut self) {
        loop {
            match guarded(|| self.step()) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => self.start_over(&error),
            }
        }
    }

    /// One pass, after waiting for work if there is none. `false` once the engine stops.
    pub fn step(&mut self) -> bool {
        self.let_go();
        if !self.admit() {
            return false;
        }
        let counts = self.plan();
        let began = Instant::now();
        #[cfg(any(debug_assertions, feature = "planted"))]
        self.planted
            .begins(self.running.iter().any(|r| r.prompt_left() > 0));
        let outcomes = self.pass(&counts);
        #[cfg(any(debug_assertions, feature = "planted"))]
        self.be_slow(&counts);
        self.take(&counts, outcomes, began);
        true
    }

    /// Waits as a test has planted it.
    #[cfg(any(debug_assertions, feature = "planted"))]
    fn be_slow(&mut self, counts: &[usize]) {
        let left = self.running.iter().map(Running::prompt_left);
        let parts = || left.clone().zip(counts.iter().copied());
        let first = parts().any(|(left, n)| left > 0 && left == n);
        let decodes = parts().all(|(left, _)| left == 0);
        self.planted.wait(first, decodes);
    }

    /// Frees the slots of requests that nobody wants, or all when the engine stops.
    fn let_go(&mut self) {
        let stopping = self.queue.stopping();
        let mut at = 0;
        while let Some(request) = self.running.get(at) {
            if !request.is_wanted() {
                self.retire(at, End::Cancelled);
            } else if stopping {
                self.retire(at, End::Failed(EngineError::ShuttingDown));
            } else {
                at += 1;
            }
        }
        self.pool.keep_within(self.running.len());
    }

    /// Fills free slots in order of arrival; waits for a request when none runs. `false` once the
    /// engine stops and nothing runs.
    fn admit(&mut self) -> bool {
        if self.running.is_empty() {
            let Some(job) = self.queue.pop() else {
                return false;
            };
            self.start(job);
        }
        while self.running.len() < self.slots
            && let Some(job) = self.queue.try_pop()
        {
            self.start(job);
        }
        true
    }

    fn start(&mut self, job: Job) {
        let taken = |slot: &usize| self.running.iter().any(|r| r.slot == *slot);
        let slot = (0..self.slots).find(|slot| !taken(slot));
        let slot = slot.unwrap_or_else(|| unreachable!("a slot is free when a request is taken"));
        let (prompt, reuse) = (&job.request.prompt, job.request.cache_prompt);
        let others = self.running.iter().map(|r| &r.sequence);
        let fresh = || self.model.new_cache();
        // Room for what `take` may copy.
        self.pool.keep_within(self.running.len());
        let sequence = self.pool.take(prompt, reuse, others, fresh);
        let all = self.running.iter().map(|r| &r.sequence).chain([&sequence]);
        let held = positions(all);
        debug_assert!(self.pool.is_within(held), "{held} positions and those kept");
        let running = Running::new(slot, job, sequence, self.model.n_ctx());
        let work = running.work();
        self.queue.count(|s| {
            s.cached_tokens += work.cached_tokens as u64;
            s.slots[slot] = Some(work);
        });
        self.running.push(running);
    }

    /// Tokens of each running request in the next pass.
    fn plan(&self) -> Vec<usize> {
        let left: Vec<usize> = self.running.iter().map(Running::prompt_left).collect();
        let prompts: Vec<usize> = left.iter().copied().filter(|&n| n > 0).collect();
        let decoding = left.len() - prompts.len();
        let budget = prompt_budget(self.model.block(), decoding);
        let mut shares = share(budget, &prompts).into_iter();
        left.iter()
            .map(|&n| {
                if n == 0 {
                    1
                } else {
                    shares.next().unwrap_or(0)
                }
            })
            .collect()
    }

    /// The results of those requests that have tokens in the pass. A panic is a defect of this
    /// program; whose part it was shows when each is computed alone.
    fn pass(&mut self, counts: &[usize]) -> Vec<Option<Outcome>> {
        let model = self.model;
        let alone = |(request, &n): (&mut Running, &usize)| {
            forward(model, std::slice::from_mut(request), &[n])
                .map_or_else(|error| Some(Err(error)), |mut one| one.pop().flatten())
        };
        forward(model, &mut self.running, counts)
            .unwrap_or_else(|_| self.running.iter_mut().zip(counts).map(alone).collect())
    }

    /// Chooses the next tokens, then hands the outcomes of the pass begun at `began` to their
    /// requests; those that end leave their slots.
    fn take(&mut self, counts: &[usize], mut outcomes: Vec<Option<Outcome>>, began: Instant) {
        let passed = Instant::now();
        let mut all: Vec<_> = self.running.iter_mut().zip(&mut outcomes).collect();
        self.model.each(&mut all, |(request, outcome)| {
            if let Some(Ok(logits)) = outcome
                && let Err(error) = guarded(|| request.choose(logits))
            {
                **outcome = Some(Err(error));
            }
        });
        self.queue.count(|s| {
            s.passes += 1;
            s.screened = self.model.screened();
            s.pass_seconds += began.elapsed().as_secs_f64();
        });
        let mut at = 0;
        for (outcome, &n) in outcomes.into_iter().zip(counts) {
            let end = match outcome {
                None => None,
                Some(Err(error)) => Some(End::Failed(error)),
                Some(Ok(_)) => self.running[at].advance(n, passed, self.queue),
            };
            match end {
                Some(end) => self.retire(at, end),
                None => at += 1,
            }
        }
        self.pool.keep_within(self.running.len());
        self.queue.count(|s| {
            for request in &self.running {
                s.slots[request.slot] = Some(request.work());
            }
        });
    }

    /// Ends the request at this place of `running`, which holds it until then: whatever fails
    /// before, `start_over` finds it there. Trimming the pool is left to the caller.
    fn retire(&mut self, at: usize, end: End) {
        self.running[at].restore();
        if let End::Failed(error @ EngineError::Internal(_)) = &end {
            eprintln!("a request failed: {error}");
        }
        let sequence = self.running.remove(at).retire(end, self.queue);
        self.pool.put(sequence);
    }

    /// After a defect of the scheduler itself: nothing that it touched is kept.
    fn start_over(&mut self, error: &EngineError) {
        eprintln!("all running requests failed: {error}");
        for request in self.running.drain(..) {
            request.retire(End::Failed(error.clone()), self.queue);
        }
        self.queue.count(|s| {
            s.running = 0;
            s.slots.fill(None);
        });
        self.pool.clear();
    }
}

/// Logits of a request's last row in a pass, where they were wanted.
type Outcome = Result<Vec<f32>, EngineError>;

/// One pass over `counts` tokens of each request; the outcomes of those that have any. An error
/// is a panic; the caches are then as they were.
fn forward<M: Forward>(
    model: &M,
    running: &mut [Running],
    counts: &[usize],
) -> Result<Vec<Option<Outcome>>, EngineError> {
    let results = {
        let mut segments: Vec<Segment<'_>> = running
            .iter_mut()
            .zip(counts)
            .filter(|(_, n)| **n > 0)
            .map(|(request, &n)| request.segment(n))
            .collect();
        guarded(|| model.forward_batch(&mut segments))
    };
    if results.is_err() {
        running.iter_mut().for_each(Running::restore);
    }
    let mut results = results?.into_iter();
    let mut next = || match results.next() {
        Some(result) => result.map_err(EngineError::from),
        None => Err(internal("a pass without a result")),
    };
    Ok(counts.iter().map(|&n| (n > 0).then(&mut next)).collect())
}

impl From<ForwardError> for EngineError {
    fn from(error: ForwardError) -> Self {
        match error {
            ForwardError::BadToken { id, vocab } => Self::BadToken { id, vocab },
            ForwardError::ContextFull { needed, ctx } => Self::ContextExceeded {
                n_prompt_tokens: needed,
                n_ctx: ctx,
            },
            ForwardError::NonFinite { .. } | ForwardError::BeyondF16 { .. } => {
                Self::Numeric(error.to_string())
            }
        }
    }
}

fn internal(what: &str) -> EngineError {
    EngineError::Internal(what.to_owned())
}

/// Runs `work`; a panic becomes an error.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| internal(panic_message(&*panic)))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("a panic without a message")
}
