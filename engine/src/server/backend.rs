//! What the HTTP surface needs from below; the engine implements it, and a scripted one in tests.

use std::future::Future;
use std::pin::Pin;

use crate::chat::ChatTemplate;
use crate::scheduler::{Engine, EngineError, EngineStats, GenEvent, GenRequest, GenStream};
use crate::tokenizer::Tokenizer;

/// A generation's events as they come. Dropping it cancels the work.
pub trait EventSource: Send {
    /// The next event; `None` after the last. Cancelling the future loses nothing.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<GenEvent>> + Send + '_>>;
}

impl EventSource for GenStream {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<GenEvent>> + Send + '_>> {
        Box::pin(GenStream::next(self))
    }
}

/// How a backend runs, for `/props`.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// Instruction-set level in use.
    pub isa: String,
    /// Format of activations.
    pub activations: String,
    /// Format of the K/V cache.
    pub kv_type: String,
    /// Worker threads in use.
    pub threads: usize,
}

/// A loaded model that takes requests.
pub trait Backend: Send + Sync + 'static {
    /// Queues a request.
    fn submit(&self, request: GenRequest) -> Result<Box<dyn EventSource>, EngineError>;
    /// The tokenizer.
    fn tokenizer(&self) -> &Tokenizer;
    /// The chat template, if the model has one.
    fn template(&self) -> Option<&ChatTemplate>;
    /// Context in tokens.
    fn n_ctx(&self) -> usize;
    /// The model's own name.
    fn model_name(&self) -> &str;
    /// Its architecture.
    fn architecture(&self) -> &str;
    /// Counters since start.
    fn stats(&self) -> EngineStats;
    /// How it runs.
    fn runtime(&self) -> Runtime;
    /// Refuses new requests and ends the running ones within one pass.
    fn shut_down(&self);
}

impl Backend for Engine {
    fn submit(&self, request: GenRequest) -> Result<Box<dyn EventSource>, EngineError> {
        Ok(Box::new(Engine::submit(self, request)?))
    }
    fn tokenizer(&self) -> &Tokenizer {
        Engine::tokenizer(self)
    }
    fn template(&self) -> Option<&ChatTemplate> {
        Engine::template(self)
    }
    fn n_ctx(&self) -> usize {
        Engine::n_ctx(self)
    }
    fn model_name(&self) -> &str {
        Engine::model_name(self)
    }
    fn architecture(&self) -> &str {
        Engine::architecture(self)
    }
    fn stats(&self) -> EngineStats {
        Engine::stats(self)
    }
    fn runtime(&self) -> Runtime {
        Runtime {
            isa: self.isa().name().to_owned(),
            activations: self.activations().name().to_owned(),
            kv_type: self.kv_type().name().to_owned(),
            threads: self.threads(),
        }
    }
    fn shut_down(&self) {
        Engine::shut_down(self);
    }
}
