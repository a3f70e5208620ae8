//! The loaded model behind a queue.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::queue::{Job, Queue};
use super::steps::Scheduler;
use super::{EngineError, EngineStats, GenRequest, GenStream};
use crate::chat::ChatTemplate;
use crate::kernels::Isa;
use crate::kv::KvType;
use crate::model::{ActivationFormat, LoadOptions, LoadedModel, ModelError};
use crate::tokenizer::Tokenizer;

/// Requests worked on at once, unless the user says otherwise. A slot costs nothing until it is
/// used, each has the whole context, and requests in one pass share the reading of the weights.
pub const DEFAULT_PARALLEL: usize = 4;

/// A loaded model, its tokenizer and template, and the thread that runs it.
pub struct Engine {
    model: Arc<LoadedModel>,
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    queue: Arc<Queue>,
    runner: Option<JoinHandle<()>>,
}

impl Engine {
    /// Loads a GGUF file; up to [`DEFAULT_PARALLEL`] requests are worked on at once.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Self, ModelError> {
        Self::start(LoadedModel::load(path, options)?, DEFAULT_PARALLEL)
    }

    /// Puts a loaded model behind a queue. Up to `parallel` requests (at least one) are worked on
    /// at once; answers do not depend on it.
    pub fn start(model: LoadedModel, parallel: usize) -> Result<Self, ModelError> {
        let tokenizer = Tokenizer::from_metadata(model.metadata())?;
        if tokenizer.vocab_size() > model.vocab() {
            return Err(ModelError::Unsupported(format!(
                "the tokenizer has {} tokens and `token_embd.weight` only {} rows",
                tokenizer.vocab_size(),
                model.vocab()
            )));
        }
        let template = ChatTemplate::from_metadata(model.metadata())?;
        let (model, queue) = (Arc::new(model), Arc::new(Queue::new(parallel.max(1))));
        let runner = {
            let (model, queue) = (Arc::clone(&model), Arc::clone(&queue));
            thread::Builder::new()
                .name("model".to_owned())
                .spawn(move || Scheduler::new(&*model, &queue).run())
        };
        let runner = runner.map_err(|error| {
            ModelError::Unsupported(format!("cannot start the model's thread: {error}"))
        })?;
        Ok(Self {
            model,
            tokenizer,
            template,
            queue,
            runner: Some(runner),
        })
    }

    /// Queues a request.
    pub fn submit(&self, request: GenRequest) -> Result<GenStream, EngineError> {
        let (n_prompt_tokens, n_ctx) = (request.prompt.len(), self.n_ctx());
        if n_prompt_tokens == 0 {
            return Err(EngineError::EmptyPrompt);
        }
        if n_prompt_tokens >= n_ctx {
            return Err(EngineError::ContextExceeded {
                n_prompt_tokens,
                n_ctx,
            });
        }
        let vocab = self.model.vocab();
        if let Some(&id) = request.prompt.iter().find(|&&id| id as usize >= vocab) {
            return Err(EngineError::BadToken { id, vocab });
        }
        let (sender, events) = tokio::sync::mpsc::unbounded_channel();
        self.queue.push(Job {
            request,
            events: sender,
        })?;
        Ok(GenStream { events })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The chat template, if the file has one.
    pub fn template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// Context in tokens.
    pub fn n_ctx(&self) -> usize {
        self.model.n_ctx()
    }

    /// `general.name`, or the file's stem.
    pub fn model_name(&self) -> &str {
        self.model.name()
    }

    /// `general.architecture`.
    pub fn architecture(&self) -> &str {
        self.model.architecture()
    }

    /// Requests worked on at once.
    pub fn parallel(&self) -> usize {
        self.queue.stats().slots.len()
    }

    /// Worker threads in use.
    pub fn threads(&self) -> usize {
        self.model.threads()
    }

    /// The instruction-set level in use.
    pub fn isa(&self) -> Isa {
        self.model.isa()
    }

    /// Format of activations.
    pub fn activations(&self) -> ActivationFormat {
        self.model.activations()
    }

    /// Format of the K/V cache.
    pub fn kv_type(&self) -> KvType {
        self.model.kv_type()
    }

    /// Counters.
    pub fn stats(&self) -> EngineStats {
        self.queue.stats()
    }

    /// Refuses new requests and ends the running ones within one pass.
    pub fn shut_down(&self) {
        self.queue.stop();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.queue.stop();
        if let Some(runner) = self.runner.take() {
            // The thread catches the panics of its jobs.
            let _ = runner.join();
        }
    }
}
