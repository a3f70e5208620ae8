//! Through the scheduler, over real models: a request's tokens and the bits of its
//! log-probabilities are the same alone and among 16, with arrivals, cancellations, cached
//! prefixes and every way of sampling mixed. A model that mixes up two rows is found out.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::fake::{arrived, submit};
use crate::kv::KvCache;
use crate::model::{ForwardError, LoadOptions, LoadedModel, Segment};
use crate::sampling::SamplingParams;
use crate::scheduler::queue::Queue;
use crate::scheduler::steps::{Forward, Scheduler};
use crate::scheduler::{GenEvent, GenRequest};

const MODELS: [&str; 2] = ["gpt-oss-8x4", "llama-mixed"];

fn model(name: &str) -> LoadedModel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let options = LoadOptions {
        block: Some(32),
        threads: Some(2),
        ..LoadOptions::default()
    };
    LoadedModel::load(&folder.join(format!("{name}.gguf")), &options).unwrap()
}

/// Hands the logits of two segments to each other, in the pass given.
struct Swapping<'a> {
    model: &'a LoadedModel,
    pass: usize,
    passes: AtomicUsize,
}

impl Forward for Swapping<'_> {
    fn n_ctx(&self) -> usize {
        self.model.n_ctx()
    }
    fn block(&self) -> usize {
        self.model.block()
    }
    fn new_cache(&self) -> KvCache {
        self.model.new_cache()
    }
    fn each<T: Send>(&self, items: &mut [T], job: impl Fn(&mut T) + Sync) {
        self.model.each(items, job);
    }
    fn forward_batch(&self, segments: &mut [Segment<'_>]) -> Vec<Result<Vec<f32>, ForwardError>> {
        let mut results = self.model.forward_batch(segments);
        if self.passes.fetch_add(1, Ordering::Relaxed) == self.pass {
            let has_logits = |i: &usize| !results[*i].as_ref().unwrap().is_empty();
            let with: Vec<usize> = (0..results.len()).filter(has_logits).collect();
            assert!(with.len() >= 2, "nothing to swap in this pass");
            results.swap(with[0], with[with.len() - 1]);
        }
        results
    }
}

/// 16 requests: different lengths, some with a common beginning, and samplings of all kinds.
fn requests() -> Vec<GenRequest> {
    (0..16u32)
        .map(|i| {
            let own = (0..5 + i * 23 % 90).map(|j| (j * j * 31 + j * 7 + i * 101 + 3) % 512);
            let shared = (0..if i % 3 == 0 { 40 } else { 0 }).map(|j| (j * 17 + 5) % 512);
            let sampling = SamplingParams {
                temperature: [0.0, 1.0, 0.7, 1.5][i as usize % 4],
                top_k: [0, 40, 0][i as usize % 3],
                top_p: [1.0, 0.9][i as usize % 2],
                min_p: [0.0, 0.05, 0.0, 0.1, 0.0][i as usize % 5],
                frequency_penalty: if i % 7 == 3 { 0.5 } else { 0.0 },
                seed: Some(u64::from(i) + 77),
                ..SamplingParams::default()
            };
            GenRequest {
                prompt: shared.chain(own).collect(),
                max_tokens: Some(8 + i as usize % 9),
                sampling,
                stop_tokens: Vec::new(),
                cache_prompt: i % 4 != 1,
                logprobs: Some(i as usize % 4),
            }
        })
        .collect()
}

/// Tokens, and the bits of what was reported with each.
type Answer = Vec<(u32, u32, Vec<(u32, u32)>)>;

fn answer(events: &[GenEvent]) -> Answer {
    events
        .iter()
        .filter_map(|event| match event {
            GenEvent::Token(token) => Some((
                token.id,
                token.logprob.unwrap().to_bits(),
                token.top.iter().map(|(id, p)| (*id, p.to_bits())).collect(),
            )),
            GenEvent::Failed(error) => panic!("{error}"),
            _ => None,
        })
        .collect()
}

/// Each request in an empty engine of its own.
fn alone(model: &LoadedModel, requests: &[GenRequest]) -> Vec<Answer> {
    let one = |request: &GenRequest| {
        let queue = Queue::new(1);
        let mut scheduler = Scheduler::new(model, &queue);
        let mut stream = submit(&queue, request.clone());
        while queue.stats().finished == 0 {
            scheduler.step();
        }
        answer(&arrived(&mut stream))
    };
    requests.iter().map(one).collect()
}

/// All of them in `slots` slots: a few at a time arrive, and others come and leave in between.
fn together(model: &impl Forward, requests: &[GenRequest], slots: usize) -> Vec<Answer> {
    let queue = Queue::new(slots);
    let mut scheduler = Scheduler::new(model, &queue);
    let mut streams = Vec::new();
    let mut passers_by = Vec::new();
    let wanted = requests.len() as u64;
    for step in 0.. {
        if step % 2 == 0 && streams.len() < requests.len() {
            let some = requests[streams.len()..].iter().take(3);
            let some: Vec<_> = some.map(|r| submit(&queue, r.clone())).collect();
            streams.extend(some);
            let mut passer_by = requests[step % requests.len()].clone();
            passer_by.prompt.rotate_left(3);
            passer_by.max_tokens = None;
            passers_by.push(submit(&queue, passer_by));
        }
        if step % 3 == 2 && !passers_by.is_empty() {
            passers_by.remove(0);
        }
        if queue.stats().finished == wanted {
            break;
        }
        scheduler.step();
    }
    assert!(queue.stats().cancelled > 0, "someone left in between");
    streams.iter_mut().map(|s| answer(&arrived(s))).collect()
}

#[test]
fn alone_and_among_sixteen_are_the_same_bits() {
    for name in MODELS {
        let model = model(name);
        let requests = requests();
        let alone = alone(&model, &requests);
        assert!(
            alone
                .iter()
                .zip(&requests)
                .all(|(a, r)| Some(a.len()) == r.max_tokens)
        );
        for slots in [16, 3] {
            assert_eq!(
                together(&model, &requests, slots),
                alone,
                "{name}, {slots} slots"
            );
        }
    }
}

#[test]
fn swapped_rows_are_found_out() {
    let model = model(MODELS[0]);
    let requests = requests();
    let alone = alone(&model, &requests);
    for pass in [4, 9] {
        let swapping = Swapping {
            model: &model,
            pass,
            passes: AtomicUsize::new(0),
        };
        assert_ne!(together(&swapping, &requests, 16), alone, "pass {pass}");
    }
}
