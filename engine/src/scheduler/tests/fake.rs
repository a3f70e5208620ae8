//! A model whose answers are easy to foretell, and which writes down what it is asked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::unbounded_channel;

use crate::kv::{KvCache, KvShape, KvType};
use crate::model::{ForwardError, Segment, Want};
use crate::sampling::SamplingParams;
use crate::scheduler::queue::{Job, Queue};
use crate::scheduler::steps::Forward;
use crate::scheduler::{GenEvent, GenRequest, GenStream, GenSummary};

/// After this token a pass meets a number that is not finite.
pub const BAD: u32 = 90;
/// On this token the model panics.
pub const PANIC: u32 = 95;
/// The next token is the last one plus 1, below this.
pub const VOCAB: usize = 100;
// The model can generate each of the special tokens.
const _: () = assert!((BAD as usize) < VOCAB && (PANIC as usize) < VOCAB);

/// One segment of a pass: the first token of its sequence, the length of its cache before, its
/// tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub first: u32,
    pub start: usize,
    pub tokens: usize,
}

/// Token t is followed by t + 1, modulo [`VOCAB`].
pub struct Fake {
    pub ctx: usize,
    pub block: usize,
    pub passes: Mutex<Vec<Vec<Seen>>>,
    /// Panic outside the next pass, once.
    pub panic_after_pass: AtomicBool,
}

impl Fake {
    pub fn new(ctx: usize, block: usize) -> Self {
        Self {
            ctx,
            block,
            passes: Mutex::default(),
            panic_after_pass: AtomicBool::new(false),
        }
    }

    /// The segments of the last pass.
    pub fn last(&self) -> Vec<Seen> {
        self.passes.lock().unwrap().last().unwrap().clone()
    }

    fn segment(segment: &mut Segment<'_>) -> Result<Vec<f32>, ForwardError> {
        if let Some(at) = segment.tokens.iter().position(|&t| t == BAD) {
            return Err(ForwardError::NonFinite {
                what: "a scripted number",
                position: segment.cache.len() + at,
                place: "in a test".into(),
            });
        }
        let keys: Vec<f32> = segment.tokens.iter().map(|&t| t as f32).collect();
        segment.cache.write(0, &keys, &keys).unwrap();
        assert!(!segment.tokens.contains(&PANIC), "a scripted panic");
        segment.cache.advance(keys.len());
        if segment.want == Want::Nothing {
            return Ok(Vec::new());
        }
        let mut logits = vec![0.0; VOCAB];
        let last = *segment.tokens.last().unwrap() as usize;
        logits[(last + 1) % VOCAB] = 5.0;
        Ok(logits)
    }
}

impl Forward for Fake {
    fn n_ctx(&self) -> usize {
        self.ctx
    }
    fn block(&self) -> usize {
        self.block
    }
    fn new_cache(&self) -> KvCache {
        let shape = KvShape {
            layers: 1,
            kv_heads: 1,
            head_dim: 1,
            ctx: self.ctx,
        };
        KvCache::new(shape, KvType::F32)
    }
    fn each<T: Send>(&self, items: &mut [T], job: impl Fn(&mut T) + Sync) {
        items.iter_mut().for_each(job);
        let panics = self.panic_after_pass.swap(false, Ordering::Relaxed);
        assert!(!panics, "a scripted panic after a pass");
    }
    fn forward_batch(&self, segments: &mut [Segment<'_>]) -> Vec<Result<Vec<f32>, ForwardError>> {
        let seen = |s: &Segment<'_>| Seen {
            first: if s.cache.is_empty() {
                s.tokens[0]
            } else {
                s.cache.layer(0).position(0, 0).0[0] as u32
            },
            start: s.cache.len(),
            tokens: s.tokens.len(),
        };
        let pass = segments.iter().map(seen).collect();
        self.passes.lock().unwrap().push(pass);
        segments.iter_mut().map(Self::segment).collect()
    }
}

/// A greedy request.
pub fn request(prompt: Vec<u32>, max_tokens: usize) -> GenRequest {
    GenRequest {
        prompt,
        max_tokens: Some(max_tokens),
        sampling: SamplingParams {
            temperature: 0.0,
            ..SamplingParams::default()
        },
        stop_tokens: Vec::new(),
        cache_prompt: false,
        logprobs: None,
    }
}

/// Queues a request.
pub fn submit(queue: &Queue, request: GenRequest) -> GenStream {
    let (events_in, events) = unbounded_channel();
    let job = Job {
        request,
        events: events_in,
    };
    queue.push(job).unwrap();
    GenStream { events }
}

/// What has come so far, without waiting.
pub fn arrived(stream: &mut GenStream) -> Vec<GenEvent> {
    std::iter::from_fn(|| stream.events.try_recv().ok()).collect()
}

/// The tokens among events.
pub fn tokens(events: &[GenEvent]) -> Vec<u32> {
    let token = |event: &GenEvent| match event {
        GenEvent::Token(token) => Some(token.id),
        _ => None,
    };
    events.iter().filter_map(token).collect()
}

/// The summary that ends the events.
pub fn summary(events: &[GenEvent]) -> GenSummary {
    match events.last() {
        Some(GenEvent::Done(summary)) => summary.clone(),
        other => panic!("not done: {other:?}"),
    }
}
