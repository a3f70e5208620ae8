//! The loaded model behind a queue.

use std::path::Path;

use super::{EngineError, EngineStats, GenRequest, GenStream};
use crate::chat::ChatTemplate;
use crate::model::ModelError;
use crate::tokenizer::Tokenizer;

/// How to load and run a model.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Worker threads; `None`: physical cores.
    pub threads: Option<usize>,
    /// Context in tokens; `None`: the file's, at most 16384.
    pub ctx: Option<usize>,
    /// f32 activations (`--reference`).
    pub reference: bool,
    /// llama.cpp's rounded YaRN ramp (`--rope-compat ggml`).
    pub rope_compat_ggml: bool,
    /// Force an instruction-set level by name.
    pub isa: Option<String>,
    /// Prompt tokens per forward pass; `None`: a good default.
    pub block: Option<usize>,
}

/// A loaded model, its tokenizer and template, and the thread that runs it.
pub struct Engine {}

impl Engine {
    /// Loads a GGUF file.
    pub fn load(_path: &Path, _options: &EngineOptions) -> Result<Self, ModelError> {
        todo!()
    }
    /// Queues a request.
    pub fn submit(&self, _request: GenRequest) -> Result<GenStream, EngineError> {
        todo!()
    }
    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        todo!()
    }
    /// The chat template, if the file has one.
    pub fn template(&self) -> Option<&ChatTemplate> {
        todo!()
    }
    /// Context in tokens.
    pub fn n_ctx(&self) -> usize {
        todo!()
    }
    /// `general.name`, or the file's stem.
    pub fn model_name(&self) -> &str {
        todo!()
    }
    /// `general.architecture`.
    pub fn architecture(&self) -> &str {
        todo!()
    }
    /// Worker threads in use.
    pub fn threads(&self) -> usize {
        todo!()
    }
    /// The instruction-set level in use.
    pub fn isa(&self) -> crate::kernels::Isa {
        todo!()
    }
    /// Counters.
    pub fn stats(&self) -> EngineStats {
        todo!()
    }
    /// Refuses new requests and ends the running ones within one block.
    pub fn shut_down(&self) {
        todo!()
    }
}
