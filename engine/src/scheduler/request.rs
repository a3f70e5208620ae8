//! What goes into the scheduler and what comes out.

use crate::model::ScreenCounts;
use crate::sampling::SamplingParams;

/// A generation to run.
#[derive(Clone, Debug)]
pub struct GenRequest {
    /// Token ids; never empty; shorter than the context.
    pub prompt: Vec<u32>,
    /// Most tokens to generate; `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// How to choose tokens.
    pub sampling: SamplingParams,
    /// Tokens that end the generation (the last one is reported, as `Finish::Stop`).
    pub stop_tokens: Vec<u32>,
    /// Whether K/V of an earlier request with the same beginning may be used.
    pub cache_prompt: bool,
    /// Report log-probabilities of the chosen token and this many alternatives.
    pub logprobs: Option<usize>,
}

/// One generated token.
#[derive(Clone, Debug)]
pub struct TokenEvent {
    /// Token id.
    pub id: u32,
    /// Natural log-probability under the unmodified softmax, if asked for.
    pub logprob: Option<f32>,
    /// The best alternatives, best first.
    pub top: Vec<(u32, f32)>,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// A stop token was generated.
    Stop,
    /// `max_tokens` or the context was reached.
    Length,
}

/// Figures of a finished generation.
#[derive(Clone, Debug)]
pub struct GenSummary {
    /// Why it ended.
    pub finish: Finish,
    /// Prompt tokens taken from the cache.
    pub cache_n: usize,
    /// Prompt tokens computed.
    pub prompt_n: usize,
    /// Milliseconds from taking the request up to the first token's logits.
    pub prompt_ms: f64,
    /// Tokens generated.
    pub predicted_n: usize,
    /// Milliseconds from the first token to the last (so N-1 intervals).
    pub predicted_ms: f64,
    /// The seed that was used.
    pub seed: u64,
    /// sha256 over prompt ids (little-endian u32), lowercase hex.
    pub prompt_hash: String,
    /// sha256 over generated ids, the stop token included.
    pub generated_hash: String,
    /// Page faults (major) of the process during the request.
    pub faults: u64,
}

/// What a caller receives, in order: `Started`, tokens, then `Done` or `Failed`.
#[derive(Clone, Debug)]
pub enum GenEvent {
    /// The request left the queue.
    Started {
        /// Prompt tokens found in the cache.
        cache_n: usize,
        /// The slot that works on it.
        slot: usize,
    },
    /// A token.
    Token(TokenEvent),
    /// The end.
    Done(GenSummary),
    /// It could not be done.
    Failed(EngineError),
}

/// Why a request was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The prompt does not fit.
    #[error("the prompt has {n_prompt_tokens} tokens and the context {n_ctx}")]
    ContextExceeded {
        /// Tokens in the prompt.
        n_prompt_tokens: usize,
        /// Context of this server.
        n_ctx: usize,
    },
    /// A token id outside the vocabulary.
    #[error("token id {id} is outside the vocabulary of {vocab}")]
    BadToken {
        /// The id.
        id: u32,
        /// Vocabulary size.
        vocab: usize,
    },
    /// Nothing to continue.
    #[error("the prompt has no tokens")]
    EmptyPrompt,
    /// Too many requests wait.
    #[error("the queue is full ({0} requests wait)")]
    QueueFull(usize),
    /// The engine is stopping.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The forward pass met numbers it cannot use.
    #[error("{0}")]
    Numeric(String),
    /// A defect of the engine itself.
    #[error("the engine failed inside: {0}")]
    Internal(String),
}

/// Receives a generation's events. Dropping it cancels the work before the next pass.
pub struct GenStream {
    pub(super) events: tokio::sync::mpsc::UnboundedReceiver<GenEvent>,
}

impl GenStream {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<GenEvent> {
        self.events.recv().await
    }
    /// The next event, for callers outside an async runtime.
    pub fn next_blocking(&mut self) -> Option<GenEvent> {
        self.events.blocking_recv()
    }
}

/// Counters since start, for `/metrics` and `/slots`.
#[derive(Clone, Debug, Default)]
pub struct EngineStats {
    /// Prompt tokens computed.
    pub prompt_tokens: u64,
    /// Prompt tokens taken from the cache.
    pub cached_tokens: u64,
    /// Tokens generated.
    pub generated_tokens: u64,
    /// Seconds spent on prompts, added up over requests (those that share passes count each).
    pub prompt_seconds: f64,
    /// Seconds spent generating, added up over requests.
    pub generate_seconds: f64,
    /// Forward passes.
    pub passes: u64,
    /// Seconds spent in them and in choosing tokens, by the clock.
    pub pass_seconds: f64,
    /// Rows of the output matrix that were screened, and computed.
    pub screened: ScreenCounts,
    /// Requests waiting.
    pub waiting: usize,
    /// Requests being worked on.
    pub running: usize,
    /// Requests finished.
    pub finished: u64,
    /// Requests cancelled by their callers.
    pub cancelled: u64,
    /// What each slot works on, if anything.
    pub slots: Vec<Option<SlotWork>>,
}

/// How far a running request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWork {
    /// Tokens of its prompt.
    pub prompt_tokens: usize,
    /// Of these, taken from the cache.
    pub cached_tokens: usize,
    /// Of these, computed so far.
    pub computed_tokens: usize,
    /// Tokens generated so far.
    pub generated_tokens: usize,
}
