//! One generation from submission to its figures.

use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::turn::Turn;
use crate::chat::Delta;
use crate::hex::hex;
use crate::scheduler::{EngineError, Finish, GenEvent, GenRequest, GenSummary, TokenEvent};
use crate::server::{ApiError, Backend, EventSource};

/// One token and what became visible with it.
#[derive(Debug)]
pub struct Step {
    /// The token.
    pub token: TokenEvent,
    /// Possibly nothing.
    pub deltas: Vec<Delta>,
    /// The slot that made it.
    pub slot: usize,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended it.
    EndOfGeneration,
    /// This stop string was found.
    Word(String),
    /// `max_tokens` or the context was reached.
    Length,
}

/// The end of an answer.
#[derive(Debug)]
pub struct Outcome {
    /// What was held back.
    pub deltas: Vec<Delta>,
    /// Why it ended.
    pub stop: StopReason,
    /// Whether a tool was called.
    pub tool_called: bool,
    /// Figures.
    pub figures: Figures,
    /// The slot that made it.
    pub slot: usize,
}

/// What a finished generation reports. Fields that this server could not know are absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Prompt tokens taken from the cache.
    pub cache_n: usize,
    /// Prompt tokens computed.
    pub prompt_n: usize,
    /// Milliseconds spent on the prompt.
    pub prompt_ms: f64,
    /// Tokens generated.
    pub predicted_n: usize,
    /// Milliseconds from the first token to the last.
    pub predicted_ms: f64,
    /// The seed.
    pub seed: u64,
    /// sha256 over the prompt's ids.
    pub prompt_hash: String,
    /// sha256 over the generated ids.
    pub generated_hash: String,
    /// Major page faults; unknown when a stop string cut the work short.
    pub faults: Option<u64>,
}

impl From<GenSummary> for Figures {
    fn from(summary: GenSummary) -> Self {
        Self {
            cache_n: summary.cache_n,
            prompt_n: summary.prompt_n,
            prompt_ms: summary.prompt_ms,
            predicted_n: summary.predicted_n,
            predicted_ms: summary.predicted_ms,
            seed: summary.seed,
            prompt_hash: summary.prompt_hash,
            generated_hash: summary.generated_hash,
            faults: Some(summary.faults),
        }
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Progress {
    /// A token.
    Step(Step),
    /// The end.
    End(Outcome),
}

/// A running generation. Dropping it cancels the work.
pub struct Generation {
    backend: Arc<dyn Backend>,
    /// `None` once a stop string was found: the work is cancelled with it.
    source: Option<Box<dyn EventSource>>,
    turn: Turn,
    word: Option<String>,
    watch: Watch,
}

/// What is counted here, for answers that a stop string ends before the engine sums up.
struct Watch {
    prompt_len: usize,
    prompt_hash: String,
    generated: Sha256,
    predicted_n: usize,
    cache_n: usize,
    slot: usize,
    seed: u64,
    started: Instant,
    first: Option<Instant>,
    last: Instant,
}

impl Generation {
    /// Submits the request.
    pub fn start(
        backend: Arc<dyn Backend>,
        request: GenRequest,
        turn: Turn,
    ) -> Result<Self, EngineError> {
        let now = Instant::now();
        let mut hasher = Sha256::new();
        for id in &request.prompt {
            hasher.update(id.to_le_bytes());
        }
        let watch = Watch {
            prompt_len: request.prompt.len(),
            prompt_hash: hex(&hasher.finalize()),
            generated: Sha256::new(),
            predicted_n: 0,
            cache_n: 0,
            slot: 0,
            seed: request.sampling.seed.unwrap_or(0),
            started: now,
            first: None,
            last: now,
        };
        let source = backend.submit(request)?;
        Ok(Self {
            backend,
            source: Some(source),
            turn,
            word: None,
            watch,
        })
    }
    /// The model behind it.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
    /// The next token or the end. Cancelling the future loses nothing.
    pub async fn next(&mut self) -> Result<Progress, ApiError> {
        loop {
            if let Some(word) = self.word.take() {
                return Ok(Progress::End(self.cut_short(word)));
            }
            let event = match &mut self.source {
                Some(source) => source.next().await,
                None => None,
            };
            match event {
                Some(GenEvent::Started { cache_n, slot }) => {
                    self.watch.cache_n = cache_n;
                    self.watch.slot = slot;
                    self.watch.started = Instant::now();
                }
                Some(GenEvent::Token(token)) => return Ok(Progress::Step(self.step(token))),
                Some(GenEvent::Done(summary)) => return Ok(Progress::End(self.end(summary))),
                Some(GenEvent::Failed(error)) => return Err(error.into()),
                None => {
                    return Err(ApiError::internal(
                        "the engine stopped in the middle of this request",
                    ));
                }
            }
        }
    }
    fn step(&mut self, token: TokenEvent) -> Step {
        self.watch.last = Instant::now();
        self.watch.first.get_or_insert(self.watch.last);
        self.watch.predicted_n += 1;
        self.watch.generated.update(token.id.to_le_bytes());
        let (deltas, word) = self.turn.push(self.backend.tokenizer(), token.id);
        if word.is_some() {
            self.word = word;
            self.source = None;
        }
        Step {
            token,
            deltas,
            slot: self.watch.slot,
        }
    }
    fn end(&mut self, summary: GenSummary) -> Outcome {
        let (deltas, word) = self.turn.finish();
        let stop = match (word, summary.finish) {
            (Some(word), _) => StopReason::Word(word),
            (None, Finish::Stop) => StopReason::EndOfGeneration,
            (None, Finish::Length) => StopReason::Length,
        };
        Outcome {
            deltas,
            stop,
            tool_called: self.turn.saw_tool_call(),
            figures: summary.into(),
            slot: self.watch.slot,
        }
    }
    fn cut_short(&mut self, word: String) -> Outcome {
        Outcome {
            deltas: Vec::new(),
            stop: StopReason::Word(word),
            tool_called: self.turn.saw_tool_call(),
            figures: self.figures_so_far(),
            slot: self.watch.slot,
        }
    }
    /// What has been counted up to the last token, by this side's clock.
    pub fn figures_so_far(&self) -> Figures {
        let watch = &self.watch;
        let first = watch.first.unwrap_or(watch.last);
        Figures {
            cache_n: watch.cache_n,
            prompt_n: watch.prompt_len - watch.cache_n.min(watch.prompt_len),
            prompt_ms: millis(watch.started, first),
            predicted_n: watch.predicted_n,
            predicted_ms: millis(first, watch.last),
            seed: watch.seed,
            prompt_hash: watch.prompt_hash.clone(),
            generated_hash: hex(&watch.generated.clone().finalize()),
            faults: None,
        }
    }
}

fn millis(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}
