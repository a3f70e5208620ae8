//! A model file with everything needed to run it, and no request in sight.

use std::path::Path;

use super::activation_format::ActivationFormat;
use super::config::{Dims, Keys};
use super::gpt_oss::GptOss;
use super::llama::Llama;
use super::tensors::{Stored, StoredLinear, Tensors, check_values};
use super::{ForwardError, ModelError};
use crate::formats::gguf::{GgufFile, Metadata};
use crate::kernels::{Activations, FpEnv, Isa, Precision};
use crate::kv::{KvCache, KvShape};
use crate::ops::{Linear, NonFinite, Tools, YarnRamp, check_finite, linear, rms_norm};
use crate::team::{Team, physical_cores};

/// `general.architecture` values that have a forward pass here.
pub const SUPPORTED_ARCHITECTURES: [&str; 2] = ["gpt-oss", "llama"];

/// Context where neither the user nor the file asks for less.
pub const DEFAULT_CTX: usize = 16384;

/// Prompt tokens per forward pass, unless the user says otherwise.
const DEFAULT_BLOCK: usize = 128;

/// How to load and run a model.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Worker threads; `None`: physical cores.
    pub threads: Option<usize>,
    /// Context in tokens; `None`: the file's, at most [`DEFAULT_CTX`].
    pub ctx: Option<usize>,
    /// How finely activations are quantised.
    pub activations: ActivationFormat,
    /// llama.cpp's rounded YaRN ramp.
    pub rope_compat_ggml: bool,
    /// Force an instruction-set level by name.
    pub isa: Option<String>,
    /// Prompt tokens per forward pass.
    pub block: Option<usize>,
}

/// Which positions' logits a forward pass returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// None (all blocks of a prompt but the last).
    Nothing,
    /// The last position's.
    Last,
    /// Every position's.
    All,
}

/// The layers of a model, from tokens to the hidden states before the final norm.
pub(super) trait Architecture: Send + Sync {
    fn head(&self) -> &Head;
    fn context(&self) -> usize;
    fn kv_shape(&self, ctx: usize) -> KvShape;
    /// Writes the tokens' keys and values behind those in `cache` (the caller advances it) and
    /// returns `[tokens, hidden]`.
    fn forward(
        &self,
        pass: &mut Pass<'_>,
        cache: &mut KvCache,
        tokens: &[u32],
    ) -> Result<Vec<f32>, ForwardError>;
}

/// The final norm and the output matrix.
pub(super) struct Head {
    norm: Vec<f32>,
    output: Stored,
    hidden: usize,
    eps: f32,
}

impl Head {
    /// `output_norm` and `output`, which falls back to the embedding.
    pub fn load(
        tensors: &mut Tensors<'_>,
        dims: &Dims,
        embedding: &Stored,
    ) -> Result<Self, ModelError> {
        let (hidden, eps) = (dims.hidden, dims.eps);
        let norm = tensors.vectors("output_norm.weight", hidden, 1)?;
        let output = if tensors.has("output.weight") {
            tensors.matrix("output.weight", hidden, embedding.rows())?
        } else {
            embedding.clone()
        };
        Ok(Self {
            norm,
            output,
            hidden,
            eps,
        })
    }
}

/// One forward pass under way: what it computes with, and where it is.
pub(super) struct Pass<'a> {
    pub file: &'a GgufFile,
    pub tools: Tools<'a>,
    /// The input of the next matrices.
    pub activations: Activations,
    /// Position of the first token.
    pub start: usize,
    /// The layer under way; `None`: the output.
    pub layer: Option<usize>,
}

impl Pass<'_> {
    /// Makes `x`, `n` rows of `width` values, the input of the matrices that follow, to be met
    /// at `precision` or more coarsely.
    pub fn take(
        &mut self,
        x: &[f32],
        n: usize,
        width: usize,
        precision: Precision,
    ) -> Result<(), ForwardError> {
        self.locate(check_finite("an activation", x, width))?;
        self.activations.set(x, n, width, precision);
        Ok(())
    }

    /// The matrix, none of an expert nor the output's, times the input.
    pub fn linear(&self, w: &StoredLinear, out: &mut Vec<f32>) {
        let weight = w.weight.matrix(self.file);
        linear(
            self.tools,
            &Linear {
                weight,
                bias: w.bias.as_deref(),
            },
            &self.activations,
            self.tools.precisions.dense,
            out,
        );
    }

    /// Says where in the model a number was not finite.
    pub fn locate(&self, result: Result<(), NonFinite>) -> Result<(), ForwardError> {
        result.map_err(|bad| ForwardError::NonFinite {
            what: bad.what,
            position: self.start + bad.row,
            place: self
                .layer
                .map_or("in the output".to_owned(), |l| format!("in layer {l}")),
        })
    }
}

/// A loaded model.
pub struct LoadedModel {
    file: GgufFile,
    model: Box<dyn Architecture>,
    team: Team,
    isa: Isa,
    activations: ActivationFormat,
    ctx: usize,
    block: usize,
    name: String,
    architecture: String,
}

impl LoadedModel {
    /// Opens and checks a GGUF file.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Self, ModelError> {
        let stem = path
            .file_stem()
            .unwrap_or(path.as_os_str())
            .to_string_lossy();
        Self::from_file(GgufFile::open(path)?, &stem, options)
    }

    /// Checks an open file. `stem` is the model's name where the file gives none.
    pub fn from_file(
        file: GgufFile,
        stem: &str,
        options: &LoadOptions,
    ) -> Result<Self, ModelError> {
        let meta = file.metadata();
        let architecture = architecture(meta)?;
        let ramp = if options.rope_compat_ggml {
            YarnRamp::Rounded
        } else {
            YarnRamp::Exact
        };
        let keys = Keys {
            meta,
            arch: &architecture,
        };
        let mut tensors = Tensors::new(&file);
        let model: Box<dyn Architecture> = match architecture.as_str() {
            "gpt-oss" => Box::new(GptOss::load(keys, &mut tensors, ramp)?),
            _ => Box::new(Llama::load(keys, &mut tensors, ramp)?),
        };
        tensors.warn_unused();
        let ctx = match options.ctx {
            None => model.context().min(DEFAULT_CTX),
            Some(ctx) if (1..=model.context()).contains(&ctx) => ctx,
            Some(ctx) => {
                return Err(ModelError::Unsupported(format!(
                    "a context of {ctx} tokens was asked for; this model takes 1 to {}",
                    model.context()
                )));
            }
        };
        let block = options.block.unwrap_or(DEFAULT_BLOCK).clamp(1, ctx);
        let isa = match &options.isa {
            None => Isa::detect(),
            Some(name) => Isa::by_name(name).ok_or_else(|| {
                let names: Vec<&str> = Isa::available().iter().map(|isa| isa.name()).collect();
                ModelError::Unsupported(format!(
                    "instruction set `{name}` is not available here; available are {}",
                    names.join(", ")
                ))
            })?,
        };
        let team = Team::new(options.threads.unwrap_or_else(physical_cores));
        check_values(&file, &team)?;
        let name = meta.opt_str("general.name")?.unwrap_or(stem).to_owned();
        Ok(Self {
            file,
            model,
            team,
            isa,
            activations: options.activations,
            ctx,
            block,
            name,
            architecture,
        })
    }

    /// The file's metadata.
    pub fn metadata(&self) -> &Metadata {
        self.file.metadata()
    }

    /// Context in tokens.
    pub fn n_ctx(&self) -> usize {
        self.ctx
    }

    /// Prompt tokens per forward pass.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Rows of the output matrix.
    pub fn vocab(&self) -> usize {
        self.model.head().output.rows()
    }

    /// Worker threads in use.
    pub fn threads(&self) -> usize {
        self.team.threads()
    }

    /// Instructions in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Format of activations.
    pub fn activations(&self) -> ActivationFormat {
        self.activations
    }

    /// `general.name`, or the file's stem.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `general.architecture`.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// An empty cache for one sequence.
    pub fn new_cache(&self) -> KvCache {
        KvCache::new(self.model.kv_shape(self.ctx))
    }

    /// One forward pass over `tokens`, at the positions behind those in `cache`. Returns the
    /// wanted logits, `[positions, vocab]`. After an error the cache holds what it held before.
    pub fn forward(
        &self,
        cache: &mut KvCache,
        tokens: &[u32],
        want: Want,
    ) -> Result<Vec<f32>, ForwardError> {
        let (vocab, start) = (self.vocab(), cache.len());
        if let Some(&id) = tokens.iter().find(|&&id| id as usize >= vocab) {
            return Err(ForwardError::BadToken { id, vocab });
        }
        if start + tokens.len() > self.ctx {
            let needed = start + tokens.len();
            return Err(ForwardError::ContextFull {
                needed,
                ctx: self.ctx,
            });
        }
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let _env = FpEnv::set_default();
        let tools = Tools {
            team: &self.team,
            isa: self.isa,
            precisions: self.activations.precisions(),
        };
        let activations = Activations::default();
        let mut pass = Pass {
            file: &self.file,
            tools,
            activations,
            start,
            layer: None,
        };
        let result = self.model.forward(&mut pass, cache, tokens);
        let x = result.inspect_err(|_| cache.truncate(start))?;
        let logits = self.logits_of(&mut pass, &x, want);
        if logits.is_err() {
            cache.truncate(start);
        } else {
            cache.advance(tokens.len());
        }
        logits
    }

    /// Norm and output matrix, for the wanted rows of `x`.
    fn logits_of(
        &self,
        pass: &mut Pass<'_>,
        x: &[f32],
        want: Want,
    ) -> Result<Vec<f32>, ForwardError> {
        let head = self.model.head();
        pass.layer = None;
        let rows = x.len() / head.hidden;
        let first = match want {
            // The states still say whether the block went well.
            Want::Nothing => {
                pass.locate(check_finite("a hidden state", x, head.hidden))?;
                return Ok(Vec::new());
            }
            Want::Last => rows - 1,
            Want::All => 0,
        };
        pass.locate(check_finite("a hidden state", x, head.hidden))?;
        pass.start += first;
        let (mut h, mut logits) = (Vec::new(), Vec::new());
        rms_norm(&x[first * head.hidden..], &head.norm, head.eps, &mut h);
        let precision = pass.tools.precisions.output;
        pass.take(&h, rows - first, head.hidden, precision)?;
        let weight = head.output.matrix(pass.file);
        linear(
            pass.tools,
            &Linear { weight, bias: None },
            &pass.activations,
            precision,
            &mut logits,
        );
        pass.locate(check_finite("a logit", &logits, self.vocab()))?;
        Ok(logits)
    }

    /// Logits of every position of `tokens`, computed in blocks from an empty cache.
    pub fn logits(&self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, ForwardError> {
        let mut cache = self.new_cache();
        let mut all = Vec::with_capacity(tokens.len());
        for block in tokens.chunks(self.block) {
            let logits = self.forward(&mut cache, block, Want::All)?;
            all.extend(logits.chunks_exact(self.vocab()).map(<[f32]>::to_vec));
        }
        Ok(all)
    }
}

/// `general.architecture`, if there is a forward pass for it.
fn architecture(meta: &Metadata) -> Result<String, ModelError> {
    let found = meta.str("general.architecture")?;
    if SUPPORTED_ARCHITECTURES.contains(&found) {
        return Ok(found.to_owned());
    }
    let kind = meta.opt_str("general.type")?;
    let found = match kind {
        Some(kind) if kind != "model" => format!("{found}` of type `{kind}"),
        _ => found.to_owned(),
    };
    Err(ModelError::Architecture {
        found,
        supported: SUPPORTED_ARCHITECTURES.join(", "),
    })
}
