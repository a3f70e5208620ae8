//! One request in a slot, from prompt to last token.

use std::time::{Duration, Instant};

use super::faults::major_faults;
use super::hash::token_hash;
use super::pool::Sequence;
use super::queue::{Job, Queue};
use super::{EngineError, Finish, GenEvent, GenSummary, SlotWork, TokenEvent};
use crate::model::{Segment, Want};
use crate::sampling::{Sampler, log_probs};

/// How a request left its slot.
pub(super) enum End {
    /// It is complete.
    Done(Finish),
    /// Nobody listens any more.
    Cancelled,
    /// It failed.
    Failed(EngineError),
}

/// A request that is worked on. Between passes its sequence holds as many tokens as its cache
/// holds positions: at first a part of the prompt, then all of it and the tokens generated, but
/// for the last one.
pub(super) struct Running {
    pub slot: usize,
    pub sequence: Sequence,
    job: Job,
    cache_n: usize,
    sampler: Sampler,
    /// Chosen after the last pass, and not yet reported.
    chosen: Option<TokenEvent>,
    generated: Vec<u32>,
    /// Tokens to generate at most.
    most: usize,
    taken: Instant,
    faults_before: Option<u64>,
    prompt_time: Duration,
    first: Option<Instant>,
    /// When its last tokens were computed or reported; at first, when it was taken.
    last: Instant,
}

impl Running {
    /// Takes a job into a slot; `sequence` holds a part of its prompt.
    pub fn new(slot: usize, job: Job, sequence: Sequence, n_ctx: usize) -> Self {
        let request = &job.request;
        let room = n_ctx - request.prompt.len();
        let now = Instant::now();
        let running = Self {
            slot,
            cache_n: sequence.tokens.len(),
            sequence,
            sampler: Sampler::new(request.sampling.clone()),
            chosen: None,
            generated: Vec::new(),
            most: request.max_tokens.map_or(room, |most| most.min(room)),
            taken: now,
            faults_before: major_faults(),
            prompt_time: Duration::ZERO,
            first: None,
            last: now,
            job,
        };
        let cache_n = running.cache_n;
        // A caller that has gone is found before the next pass.
        let _ = running.job.events.send(GenEvent::Started { cache_n, slot });
        running
    }

    /// Whether anybody still listens.
    pub fn is_wanted(&self) -> bool {
        !self.job.events.is_closed()
    }

    /// Prompt tokens still to be computed; none once it decodes.
    pub fn prompt_left(&self) -> usize {
        let prompt = self.job.request.prompt.len();
        prompt.saturating_sub(self.sequence.tokens.len())
    }

    /// What `/slots` shows.
    pub fn work(&self) -> SlotWork {
        let prompt_tokens = self.job.request.prompt.len();
        SlotWork {
            prompt_tokens,
            cached_tokens: self.cache_n,
            computed_tokens: prompt_tokens - self.prompt_left() - self.cache_n,
            generated_tokens: self.generated.len(),
        }
    }

    /// Its part of the next pass: `n` tokens of the prompt, or the last token generated.
    pub fn segment(&mut self, n: usize) -> Segment<'_> {
        let left = self.prompt_left();
        let tokens = if left > 0 {
            let done = self.sequence.tokens.len();
            &self.job.request.prompt[done..done + n]
        } else {
            &self.generated[self.generated.len() - n..]
        };
        let want = if left > n {
            Want::Nothing
        } else {
            // Log-probabilities are of all tokens.
            let best = self.sampler.best_needed();
            best.filter(|_| self.job.request.logprobs.is_none())
                .map_or(Want::Last, Want::Best)
        };
        Segment {
            cache: &mut self.sequence.cache,
            tokens,
            want,
        }
    }

    /// Forgets what a pass that failed may have written.
    pub fn restore(&mut self) {
        self.sequence.truncate(self.sequence.tokens.len());
    }

    /// Chooses the next token from the logits of a pass; nothing to do without any.
    pub fn choose(&mut self, logits: &[f32]) {
        if logits.is_empty() || self.most == 0 {
            return;
        }
        let id = self.sampler.choose(logits);
        let alternatives = self.job.request.logprobs;
        let alternatives = alternatives.map(|n| log_probs(logits, id, n));
        let (logprob, top) = alternatives.map_or((None, Vec::new()), |l| (Some(l.chosen), l.top));
        self.chosen = Some(TokenEvent { id, logprob, top });
    }

    /// Takes in that a pass over `n` of its tokens went well, at `passed`, and reports the token
    /// chosen after it, if the prompt is complete by now. Says when the request ends.
    pub fn advance(&mut self, n: usize, passed: Instant, queue: &Queue) -> Option<End> {
        let left = self.prompt_left();
        if left == 0 {
            self.sequence.tokens.extend(self.generated.last());
            return self.report(queue);
        }
        let prompt = &self.job.request.prompt;
        let done = self.sequence.tokens.len();
        self.sequence
            .tokens
            .extend_from_slice(&prompt[done..done + n]);
        let step = passed - self.last;
        self.last = passed;
        queue.count(|s| {
            s.prompt_tokens += n as u64;
            s.prompt_seconds += step.as_secs_f64();
        });
        if left > n {
            return None;
        }
        // The next turn of a conversation, or the same prompt again, is likely to part from here.
        self.sequence.cache.mark();
        self.prompt_time = passed - self.taken;
        self.report(queue)
    }

    /// Reports the token chosen; there is none where none was to be generated.
    fn report(&mut self, queue: &Queue) -> Option<End> {
        let Some(token) = self.chosen.take() else {
            return Some(End::Done(Finish::Length));
        };
        let id = token.id;
        self.generated.push(id);
        let now = Instant::now();
        self.first.get_or_insert(now);
        let step = now - self.last;
        self.last = now;
        queue.count(|s| {
            s.generated_tokens += 1;
            s.generate_seconds += step.as_secs_f64();
        });
        if self.job.events.send(GenEvent::Token(token)).is_err() {
            Some(End::Cancelled)
        } else if self.job.request.stop_tokens.contains(&id) {
            Some(End::Done(Finish::Stop))
        } else if self.generated.len() == self.most {
            Some(End::Done(Finish::Length))
        } else {
            None
        }
    }

    /// Reports the end to the caller and in the counters; gives the sequence back.
    pub fn retire(self, end: End, queue: &Queue) -> Sequence {
        queue.count(|s| {
            match end {
                End::Cancelled => s.cancelled += 1,
                End::Done(_) | End::Failed(_) => s.finished += 1,
            }
            s.running -= 1;
            s.slots[self.slot] = None;
        });
        let event = match end {
            End::Cancelled => None,
            End::Done(finish) => Some(GenEvent::Done(self.summary(finish))),
            End::Failed(error) => Some(GenEvent::Failed(error)),
        };
        if let Some(event) = event {
            // A caller that has gone needs no answer.
            let _ = self.job.events.send(event);
        }
        self.sequence
    }

    fn summary(&self, finish: Finish) -> GenSummary {
        let faults = major_faults()
            .zip(self.faults_before)
            .map_or(0, |(after, before)| after - before);
        let prompt = &self.job.request.prompt;
        GenSummary {
            finish,
            cache_n: self.cache_n,
            prompt_n: prompt.len() - self.cache_n,
            prompt_ms: millis(self.prompt_time),
            predicted_n: self.generated.len(),
            predicted_ms: self.first.map_or(0.0, |first| millis(self.last - first)),
            seed: self.sampler.seed(),
            prompt_hash: token_hash(prompt),
            generated_hash: token_hash(&self.generated),
            faults,
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
