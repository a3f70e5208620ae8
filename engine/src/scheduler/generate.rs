//! One request from prompt to last token.

use std::time::{Duration, Instant};

use super::faults::major_faults;
use super::hash::token_hash;
use super::pool::{Pool, Sequence};
use super::queue::{Job, Queue};
use super::{EngineError, Finish, GenEvent, GenSummary, TokenEvent};
use crate::model::{ForwardError, LoadedModel, Want};
use crate::sampling::{Sampler, log_probs};

/// Why a generation ended without a summary.
enum Stopped {
    /// Nobody listens any more.
    Cancelled,
    /// It failed.
    Failed(EngineError),
}

impl From<ForwardError> for Stopped {
    fn from(error: ForwardError) -> Self {
        Self::Failed(match error {
            ForwardError::BadToken { id, vocab } => EngineError::BadToken { id, vocab },
            ForwardError::ContextFull { needed, ctx } => EngineError::ContextExceeded {
                n_prompt_tokens: needed,
                n_ctx: ctx,
            },
            ForwardError::NonFinite { .. } => EngineError::Numeric(error.to_string()),
        })
    }
}

/// Runs a job to its end and reports it to its caller and in the counters.
pub(super) fn run_job(model: &LoadedModel, pool: &mut Pool, queue: &Queue, job: &Job) {
    let reuse = job.request.cache_prompt;
    let mut sequence = pool.take(&job.request.prompt, reuse, || model.new_cache());
    let result = generate(model, &mut sequence, queue, job);
    // A failed pass leaves the cache as it was before it; the tokens follow.
    sequence.tokens.truncate(sequence.cache.len());
    pool.put(sequence);
    // A caller that has gone needs no answer.
    match result {
        Ok(summary) => {
            queue.count(|s| {
                s.finished += 1;
                s.running = 0;
            });
            let _ = job.events.send(GenEvent::Done(summary));
        }
        Err(Stopped::Cancelled) => queue.count(|s| {
            s.cancelled += 1;
            s.running = 0;
        }),
        Err(Stopped::Failed(error)) => {
            queue.count(|s| {
                s.finished += 1;
                s.running = 0;
            });
            let _ = job.events.send(GenEvent::Failed(error));
        }
    }
}

/// Ends the work when nobody wants it or the engine stops.
fn check_wanted(queue: &Queue, job: &Job) -> Result<(), Stopped> {
    if job.events.is_closed() {
        Err(Stopped::Cancelled)
    } else if queue.stopping() {
        Err(Stopped::Failed(EngineError::ShuttingDown))
    } else {
        Ok(())
    }
}

fn send(job: &Job, event: GenEvent) -> Result<(), Stopped> {
    job.events.send(event).map_err(|_| Stopped::Cancelled)
}

fn generate(
    model: &LoadedModel,
    sequence: &mut Sequence,
    queue: &Queue,
    job: &Job,
) -> Result<GenSummary, Stopped> {
    let request = &job.request;
    let taken = Instant::now();
    let faults_before = major_faults();
    let cache_n = sequence.cache.len();
    queue.count(|s| s.cached_tokens += cache_n as u64);
    send(job, GenEvent::Started { cache_n })?;

    let mut logits = prefill(model, sequence, queue, job)?;
    let first_logits = Instant::now();
    let prompt_time = first_logits - taken;
    queue.count(|s| s.prompt_seconds += prompt_time.as_secs_f64());

    let room = model.n_ctx() - request.prompt.len();
    let most = request.max_tokens.map_or(room, |m| m.min(room));
    let mut sampler = Sampler::new(request.sampling.clone());
    let mut generated = Vec::new();
    let mut finish = Finish::Length;
    let (mut first, mut last) = (None, first_logits);
    while generated.len() < most {
        let id = sampler.choose(&logits);
        generated.push(id);
        let alternatives = request.logprobs.map(|n| log_probs(&logits, id, n));
        let now = Instant::now();
        first.get_or_insert(now);
        let step = now - last;
        last = now;
        queue.count(|s| {
            s.generated_tokens += 1;
            s.generate_seconds += step.as_secs_f64();
        });
        let (logprob, top) = alternatives.map_or((None, Vec::new()), |l| (Some(l.chosen), l.top));
        send(job, GenEvent::Token(TokenEvent { id, logprob, top }))?;
        if request.stop_tokens.contains(&id) {
            finish = Finish::Stop;
            break;
        }
        if generated.len() == most {
            break;
        }
        check_wanted(queue, job)?;
        logits = model.forward(&mut sequence.cache, &[id], Want::Last)?;
        sequence.tokens.push(id);
    }
    let faults = major_faults()
        .zip(faults_before)
        .map_or(0, |(after, before)| after - before);
    Ok(GenSummary {
        finish,
        cache_n,
        prompt_n: request.prompt.len() - cache_n,
        prompt_ms: millis(prompt_time),
        predicted_n: generated.len(),
        predicted_ms: first.map_or(0.0, |first| millis(last - first)),
        seed: sampler.seed(),
        prompt_hash: token_hash(&request.prompt),
        generated_hash: token_hash(&generated),
        faults,
    })
}

/// Computes the prompt behind what the sequence holds; returns the last position's logits.
fn prefill(
    model: &LoadedModel,
    sequence: &mut Sequence,
    queue: &Queue,
    job: &Job,
) -> Result<Vec<f32>, Stopped> {
    let rest = &job.request.prompt[sequence.cache.len()..];
    let mut logits = Vec::new();
    let mut left = rest.len();
    for block in rest.chunks(model.block()) {
        check_wanted(queue, job)?;
        left -= block.len();
        let want = if left == 0 { Want::Last } else { Want::Nothing };
        logits = model.forward(&mut sequence.cache, block, want)?;
        sequence.tokens.extend_from_slice(block);
        queue.count(|s| s.prompt_tokens += block.len() as u64);
    }
    Ok(logits)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
