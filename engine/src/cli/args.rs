//! Flags that several commands share.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::failure::Failure;
use super::store::StoreArgs;
use crate::kernels::Isa;
use crate::kv::KvType;
use crate::model::{ActivationFormat, LoadOptions};
use crate::sampling::SamplingParams;
use crate::scheduler::Engine;

/// Whose rounding of YaRN's ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RopeCompat {
    /// Unrounded, as in the reference implementation.
    Reference,
    /// Rounded, as in ggml.
    Ggml,
}

/// How to load and run a model on so many threads.
#[derive(Clone, Debug, Args)]
pub struct ModelArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Worker threads [default: physical cores]
    #[arg(long, short = 't', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// How to load and run a model.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    /// The model file (GGUF; for a split one, its first part), or a store packed from one
    #[arg(value_name = "MODEL.gguf")]
    pub model: PathBuf,
    /// Context of each request in tokens [default: the model's, at most 16384]
    #[arg(long, short = 'c', visible_alias = "ctx-size", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub ctx: Option<u32>,
    /// Prompt tokens in one forward pass; fewer make shorter gaps in the answers of others
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub block: Option<u32>,
    /// How finely activations are quantised
    #[arg(long, value_enum, default_value_t)]
    pub activations: ActivationFormat,
    /// Format of the K/V cache
    #[arg(long, value_enum, default_value_t, value_name = "TYPE")]
    pub kv_type: KvType,
    /// Keep activations and K/V in f32: slow, the oracle
    #[arg(long, conflicts_with_all = ["activations", "kv_type"])]
    pub reference: bool,
    /// Rounding of YaRN's ramp
    #[arg(long, value_enum, default_value = "reference")]
    pub rope_compat: RopeCompat,
    /// Force an instruction-set level (scalar, avx2, avxvnni, avx512, neon)
    #[arg(long, value_name = "LEVEL")]
    pub isa: Option<String>,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl LoadArgs {
    /// As the engine takes them; an instruction set that is not there is refused here.
    pub fn options(&self, threads: Option<usize>) -> Result<LoadOptions, Failure> {
        if let Some(name) = &self.isa
            && Isa::by_name(name).is_none()
        {
            let have: Vec<&str> = Isa::available().iter().map(|isa| isa.name()).collect();
            return Err(Failure::new(format!(
                "this machine has no instruction-set level {name:?}"
            ))
            .hint(format!("--isa takes {}", have.join(", "))));
        }
        Ok(LoadOptions {
            threads,
            ctx: self.ctx.map(|tokens| tokens as usize),
            activations: if self.reference {
                ActivationFormat::F32
            } else {
                self.activations
            },
            rope_compat_ggml: self.rope_compat == RopeCompat::Ggml,
            isa: self.isa.clone(),
            block: self.block.map(|tokens| tokens as usize),
            kv_type: if self.reference {
                KvType::F32
            } else {
                self.kv_type
            },
        })
    }
    /// The file to load: the model, or its store, which is written where there is none.
    pub fn file(&self) -> Result<PathBuf, Failure> {
        self.store.prepare(&self.model)
    }
}

impl ModelArgs {
    /// See [`LoadArgs::options`].
    pub fn options(&self) -> Result<LoadOptions, Failure> {
        self.load.options(self.threads.map(usize::from))
    }
    /// See [`LoadArgs::file`].
    pub fn file(&self) -> Result<PathBuf, Failure> {
        self.load.file()
    }
    /// Loads the model.
    pub fn load(&self) -> Result<Arc<Engine>, Failure> {
        let options = self.options()?;
        Engine::load(&self.file()?, &options)
            .map(Arc::new)
            .map_err(|error| load_failure(&self.load.model, error))
    }
}

/// Says which file did not load.
pub fn load_failure(path: &std::path::Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("cannot load {}: {error}", path.display()))
        .hint("`palindrome-engine info` and `verify` look at a file without serving it")
}

/// How to choose tokens.
#[derive(Clone, Debug, Args)]
pub struct SamplingArgs {
    /// 0 is greedy
    #[arg(long, default_value_t = 0.0, value_name = "T")]
    pub temperature: f32,
    /// Keep the K best tokens; 0 is off
    #[arg(long, default_value_t = 0, value_name = "K")]
    pub top_k: u32,
    /// Keep the best tokens up to this share; 1 is off
    #[arg(long, default_value_t = 1.0, value_name = "P")]
    pub top_p: f32,
    /// Drop tokens below this share of the best; 0 is off
    #[arg(long, default_value_t = 0.0, value_name = "P")]
    pub min_p: f32,
    /// Same seed, same tokens [default: a fresh one]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl SamplingArgs {
    /// As the engine takes them.
    pub fn params(&self) -> Result<SamplingParams, Failure> {
        let shares = [("--top-p", self.top_p), ("--min-p", self.min_p)];
        if let Some((name, value)) = shares.iter().find(|(_, p)| !(0.0..=1.0).contains(p)) {
            return Err(Failure::new(format!(
                "{name} must lie between 0 and 1, got {value}"
            )));
        }
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return Err(Failure::new(format!(
                "--temperature must be 0 or more, got {}",
                self.temperature
            )));
        }
        Ok(SamplingParams {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            seed: self.seed,
            ..SamplingParams::default()
        })
    }
}
