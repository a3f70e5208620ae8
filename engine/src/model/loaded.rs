//! A model file with everything needed to run it, and no request in sight.

use std::ops::Range;
use std::path::Path;

use super::activation_format::ActivationFormat;
use super::batch::{BadRow, Batch, Fault, Segment};
use super::config::{Dims, Keys};
use super::gpt_oss::GptOss;
use super::llama::Llama;
use super::qwen3_moe::Qwen3Moe;
use super::screening::{ScreenCounts, Screening};
use super::tensors::{Stored, StoredLinear, Tensors, check_values};
use super::{ForwardError, ModelError};
use crate::formats::gguf::{GgufFile, Metadata};
use crate::formats::store;
use crate::kernels::{Activations, FpEnv, Isa, Layout, Matrix, Precision};
use crate::kv::{KvCache, KvType};
use crate::ops::{
    Linear, MoeBuffers, NonFinite, Tools, YarnRamp, best_rows, check_computed, check_finite,
    linear, quantize, rms_norm,
};
use crate::team::{Team, physical_cores};

/// `general.architecture` values that have a forward pass here.
pub const SUPPORTED_ARCHITECTURES: [&str; 3] = ["gpt-oss", "llama", "qwen3moe"];

/// Context where neither the user nor the file asks for less.
pub const DEFAULT_CTX: usize = 16384;

/// Best logits of a row that screening still pays for.
const MOST_BEST: usize = 256;

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
    /// Format of the K/V cache.
    pub kv_type: KvType,
}

/// Which positions' logits a forward pass returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// None (all blocks of a prompt but the last).
    Nothing,
    /// The last position's.
    Last,
    /// The last position's, of those tokens that may be among the best so many; those of the
    /// others may be negative infinity instead.
    Best(usize),
    /// Every position's.
    All,
}

/// The layers of a model, from tokens to the hidden states before the final norm.
pub(super) trait Architecture: Send + Sync {
    fn head(&self) -> &Head;
    fn dims(&self) -> &Dims;
    /// How many of the last positions each layer looks at; `None`: all.
    fn windows(&self) -> Vec<Option<usize>> {
        vec![None; self.dims().layers]
    }
    /// Writes the tokens' keys and values behind those in their caches (the caller advances them)
    /// and returns `[tokens, hidden]`.
    fn forward(&self, pass: &mut Pass<'_>, batch: &mut Batch<'_>) -> Result<Vec<f32>, BadRow>;
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
    /// Of the experts.
    pub moe: MoeBuffers,
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
    ) -> Result<(), BadRow> {
        self.locate(check_finite("an activation", x, width))?;
        let a = &mut self.activations;
        quantize(self.tools.team, a, x, &[0, n], width, precision, true);
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
    pub fn locate(&self, result: Result<(), NonFinite>) -> Result<(), BadRow> {
        result.map_err(|bad| BadRow {
            fault: Fault::NonFinite(bad.what),
            row: bad.row,
            layer: self.layer,
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
    kv_type: KvType,
    ctx: usize,
    block: usize,
    name: String,
    architecture: String,
    screening: Screening,
}

impl LoadedModel {
    /// Opens and checks a GGUF file, or a store packed from one.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Self, ModelError> {
        let file = store::open_model(path)?;
        let stem = file.stem();
        Self::from_file(file, &stem, options)
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
            "qwen3moe" => Box::new(Qwen3Moe::load(keys, &mut tensors, ramp)?),
            _ => Box::new(Llama::load(keys, &mut tensors, ramp)?),
        };
        tensors.warn_unused();
        let ctx = match options.ctx {
            None => model.dims().context.min(DEFAULT_CTX),
            Some(ctx) if (1..=model.dims().context).contains(&ctx) => ctx,
            Some(ctx) => {
                return Err(ModelError::Unsupported(format!(
                    "a context of {ctx} tokens was asked for; this model takes 1 to {}",
                    model.dims().context
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
        if !file.is_packed() {
            check_values(&file, &team)?;
        }
        file.populate();
        let name = meta.opt_str("general.name")?.unwrap_or(stem).to_owned();
        Ok(Self {
            file,
            model,
            team,
            isa,
            activations: options.activations,
            kv_type: options.kv_type,
            ctx,
            block,
            name,
            architecture,
            screening: Screening::default(),
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

    /// The threads that passes run on.
    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// The same model on kernels with a defect.
    #[cfg(test)]
    pub(crate) fn with_fault(mut self, fault: crate::kernels::fault::Fault) -> Self {
        self.isa = self.isa.with_fault(fault);
        self
    }

    /// Instructions in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Format of activations.
    pub fn activations(&self) -> ActivationFormat {
        self.activations
    }

    /// Format of the K/V cache.
    pub fn kv_type(&self) -> KvType {
        self.kv_type
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
        let shape = self.model.dims().kv_shape(self.ctx);
        KvCache::windowed(shape, self.kv_type, &self.model.windows())
    }

    /// One forward pass over `tokens`, at the positions behind those in `cache`. Returns the
    /// wanted logits, `[positions, vocab]`. After an error the cache holds what it held before.
    pub fn forward(
        &self,
        cache: &mut KvCache,
        tokens: &[u32],
        want: Want,
    ) -> Result<Vec<f32>, ForwardError> {
        let mut segments = [Segment {
            cache,
            tokens,
            want,
        }];
        // One result a segment.
        self.forward_batch(&mut segments)
            .pop()
            .unwrap_or_else(|| Ok(Vec::new()))
    }

    /// One forward pass over the tokens of several sequences. Each result, one a segment in the
    /// same order, is to the last bit what [`LoadedModel::forward`] would give for that segment
    /// alone. A segment that fails leaves its cache as it was and the others untouched: they are
    /// computed again without it.
    pub fn forward_batch(
        &self,
        segments: &mut [Segment<'_>],
    ) -> Vec<Result<Vec<f32>, ForwardError>> {
        let mut results: Vec<Result<Vec<f32>, ForwardError>> =
            segments.iter().map(|s| self.admissible(s)).collect();
        loop {
            let (members, mut sound): (Vec<usize>, Vec<&mut Segment<'_>>) = segments
                .iter_mut()
                .enumerate()
                .filter(|(i, s)| results[*i].is_ok() && !s.tokens.is_empty())
                .unzip();
            if members.is_empty() {
                return results;
            }
            match self.pass(&mut sound) {
                Ok(logits) => {
                    for (member, logits) in members.into_iter().zip(logits) {
                        results[member] = Ok(logits);
                    }
                    return results;
                }
                Err((member, error)) => results[members[member]] = Err(error),
            }
        }
    }

    /// Whether a segment can be computed at all; the result is empty so far.
    fn admissible(&self, segment: &Segment<'_>) -> Result<Vec<f32>, ForwardError> {
        let vocab = self.vocab();
        if let Some(&id) = segment.tokens.iter().find(|&&id| id as usize >= vocab) {
            return Err(ForwardError::BadToken { id, vocab });
        }
        let needed = segment.cache.len() + segment.tokens.len();
        if needed > self.ctx {
            let ctx = self.ctx;
            return Err(ForwardError::ContextFull { needed, ctx });
        }
        Ok(Vec::new())
    }

    /// A pass over admissible segments: each one's logits, or which one failed. After a failure
    /// all caches hold what they held before.
    fn pass(
        &self,
        segments: &mut [&mut Segment<'_>],
    ) -> Result<Vec<Vec<f32>>, (usize, ForwardError)> {
        let _env = FpEnv::set_default();
        let wants: Vec<Want> = segments.iter().map(|s| s.want).collect();
        let mut pass = Pass {
            file: &self.file,
            tools: Tools {
                team: &self.team,
                isa: self.isa,
                precisions: self.activations.precisions(),
            },
            activations: Activations::default(),
            moe: MoeBuffers::default(),
            layer: None,
        };
        let mut batch = Batch::new(segments.iter_mut().map(|s| &mut **s));
        let states = self.model.forward(&mut pass, &mut batch);
        let result = states
            .and_then(|x| self.logits_of(&mut pass, &batch, &x, &wants))
            .map_err(|bad| {
                let place = batch.places[bad.row];
                (place.segment, bad.at(place.position))
            });
        batch.finish(result.is_ok());
        result
    }

    /// Norm and output matrix, for the wanted rows of `x`: the logits of each segment.
    fn logits_of(
        &self,
        pass: &mut Pass<'_>,
        batch: &Batch<'_>,
        x: &[f32],
        wants: &[Want],
    ) -> Result<Vec<Vec<f32>>, BadRow> {
        let head = self.model.head();
        let (hidden, vocab) = (head.hidden, self.vocab());
        pass.layer = None;
        // The states of rows that are not wanted still say whether the pass went well.
        pass.locate(check_finite("a hidden state", x, hidden))?;
        let wanted: Vec<Range<usize>> = wants
            .iter()
            .enumerate()
            .map(|(s, want)| {
                let rows = batch.rows(s);
                match want {
                    Want::Nothing => rows.end..rows.end,
                    Want::Last | Want::Best(_) => rows.end - 1..rows.end,
                    Want::All => rows,
                }
            })
            .collect();
        let rows: Vec<usize> = wanted.iter().cloned().flatten().collect();
        let whose = |bad: BadRow| BadRow {
            row: rows[bad.row],
            ..bad
        };
        let picked: Vec<f32> = rows
            .iter()
            .flat_map(|row| &x[row * hidden..][..hidden])
            .copied()
            .collect();
        let (mut h, mut logits) = (Vec::new(), Vec::new());
        rms_norm(&self.team, &picked, &head.norm, head.eps, &mut h);
        let precision = pass.tools.precisions.output;
        pass.take(&h, rows.len(), hidden, precision)
            .map_err(whose)?;
        let weight = head.output.matrix(pass.file);
        let best = best(&weight, precision, wants);
        let check = if let Some(best) = best.filter(|_| self.screening.is_on()) {
            let (tools, x) = (pass.tools, &pass.activations);
            let kept = best_rows(tools, &weight, x, precision, &best, &mut logits);
            self.screening.saw(kept);
            check_computed("a logit", &logits, vocab)
        } else {
            linear(
                pass.tools,
                &Linear { weight, bias: None },
                &pass.activations,
                precision,
                &mut logits,
            );
            check_finite("a logit", &logits, vocab)
        };
        pass.locate(check).map_err(whose)?;
        if let [_] = wanted[..] {
            return Ok(vec![logits]);
        }
        let mut rest = &logits[..];
        Ok(wanted
            .iter()
            .map(|rows| {
                let (own, others) = rest.split_at(rows.len() * vocab);
                rest = others;
                own.to_vec()
            })
            .collect())
    }

    /// What screening the output matrix came to; zeros where there was none.
    pub fn screened(&self) -> ScreenCounts {
        self.screening.counts()
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

/// How many of each row's best logits are wanted, where the output can be screened for them.
fn best(output: &Matrix<'_>, precision: Precision, wants: &[Want]) -> Option<Vec<usize>> {
    if output.layout != Layout::Planes || precision == Precision::Reference {
        return None;
    }
    let wanted = wants.iter().filter(|want| **want != Want::Nothing);
    let best: Option<Vec<usize>> = wanted
        .map(|want| match want {
            Want::Best(k) if *k <= MOST_BEST => Some(*k),
            _ => None,
        })
        .collect();
    best.filter(|best| !best.is_empty())
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
