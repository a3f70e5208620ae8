//! `synth`: writes a random-weight model file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::failure::Failure;
use crate::synth::{Shape, VocabKind, plan, write};

/// Shapes that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Named {
    /// 24 layers of 32 experts: 12 GB
    #[value(name = "gpt-oss-20b")]
    GptOss20b,
    /// 36 layers of 128 experts: 63 GB
    #[value(name = "gpt-oss-120b")]
    GptOss120b,
    /// 48 layers of 128 experts, in Q4_K and Q6_K: 18 GB
    #[value(name = "qwen3-30b-a3b")]
    Qwen3_30bA3b,
    /// gpt-oss with 4 layers of 8 experts: 2 MB
    Tiny,
    /// Qwen3-MoE with 4 layers of 8 experts: 5 MB
    #[value(name = "tiny-qwen3moe")]
    TinyQwen3Moe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tokens {
    O200k,
    Bytes,
}

/// Flags of `synth`.
#[derive(Debug, Args)]
pub struct SynthArgs {
    /// The file to write
    #[arg(value_name = "OUT.gguf")]
    out: PathBuf,
    /// Sizes to start from; the flags below change single ones
    #[arg(long, value_enum, default_value = "tiny")]
    shape: Named,
    /// Seed of the weights: the same seed gives the same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How uneven and sticky expert use is: 0 leaves it to chance, 1 falls off as Zipf's law
    #[arg(long, default_value_t = 0.0, value_name = "X")]
    router_skew: f32,
    /// Vocabulary [default: o200k for gpt-oss-20b and -120b, else bytes]
    #[arg(long, value_enum)]
    tokens: Option<Tokens>,
    /// Size of a bytes vocabulary [default: 512, and 151936 for qwen3-30b-a3b]
    #[arg(long)]
    vocab: Option<u32>,
    /// Layers
    #[arg(long)]
    layers: Option<u32>,
    /// Experts a layer
    #[arg(long)]
    experts: Option<u32>,
    /// Experts that a token uses
    #[arg(long)]
    experts_used: Option<u32>,
    /// Width of the hidden state
    #[arg(long)]
    hidden: Option<u32>,
    /// Width of an expert
    #[arg(long)]
    expert_width: Option<u32>,
    /// Query heads
    #[arg(long)]
    heads: Option<u32>,
    /// Key and value heads
    #[arg(long)]
    kv_heads: Option<u32>,
    /// Width of a head
    #[arg(long)]
    head_dim: Option<u32>,
    /// Sliding window of the even layers, in tokens (gpt-oss)
    #[arg(long)]
    window: Option<u32>,
    /// Context length, in tokens
    #[arg(long)]
    ctx: Option<u32>,
    /// Base of the rotary embedding
    #[arg(long)]
    rope_base: Option<f32>,
    /// How far YaRN stretches the context
    #[arg(long)]
    yarn_factor: Option<f32>,
    /// Context before stretching, in tokens
    #[arg(long)]
    yarn_original: Option<u32>,
    /// Threads [default: all cores]; they change nothing in the file
    #[arg(long)]
    threads: Option<usize>,
    /// Replace OUT.gguf if it exists
    #[arg(long)]
    force: bool,
}

impl SynthArgs {
    fn shape(&self) -> Shape {
        let mut shape = match self.shape {
            Named::GptOss20b => Shape::GPT_OSS_20B,
            Named::GptOss120b => Shape::GPT_OSS_120B,
            Named::Qwen3_30bA3b => Shape::QWEN3_30B_A3B,
            Named::Tiny => Shape::TINY,
            Named::TinyQwen3Moe => Shape::TINY_QWEN3_MOE,
        };
        let changes = [
            (&mut shape.layers, self.layers),
            (&mut shape.experts, self.experts),
            (&mut shape.experts_used, self.experts_used),
            (&mut shape.hidden, self.hidden),
            (&mut shape.expert_width, self.expert_width),
            (&mut shape.heads, self.heads),
            (&mut shape.kv_heads, self.kv_heads),
            (&mut shape.head_dim, self.head_dim),
            (&mut shape.context, self.ctx),
            (&mut shape.yarn.original, self.yarn_original),
        ];
        for (field, change) in changes {
            *field = change.unwrap_or(*field);
        }
        shape.window = self.window.or(shape.window);
        shape.rope_base = self.rope_base.unwrap_or(shape.rope_base);
        shape.yarn.factor = self.yarn_factor.unwrap_or(shape.yarn.factor);
        shape
    }

    fn vocab(&self) -> Result<VocabKind, Failure> {
        let default = match self.shape {
            Named::GptOss20b | Named::GptOss120b if self.vocab.is_none() => Tokens::O200k,
            Named::Qwen3_30bA3b if self.vocab.is_none() && self.tokens != Some(Tokens::O200k) => {
                return Ok(VocabKind::QWEN3);
            }
            _ => Tokens::Bytes,
        };
        match (self.tokens.unwrap_or(default), self.vocab) {
            (Tokens::O200k, None) => Ok(VocabKind::O200k),
            (Tokens::O200k, Some(_)) => Err(Failure::new(
                "--vocab sizes a bytes vocabulary; o200k always has 201088 tokens",
            )
            .hint("leave --vocab out, or say --tokens bytes")),
            (Tokens::Bytes, n) => Ok(VocabKind::Bytes(n.unwrap_or(512))),
        }
    }
}

/// Writes the file and says what it is.
pub fn run(args: &SynthArgs) -> Result<ExitCode, Failure> {
    if !(args.router_skew >= 0.0 && args.router_skew.is_finite()) {
        let found = args.router_skew;
        return Err(Failure::new(format!(
            "--router-skew is {found}; expected 0 or more"
        )));
    }
    let threads = args
        .threads
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let plan = plan(&args.shape(), args.vocab()?, args.router_skew).map_err(Failure::new)?;
    let report = write(&args.out, &plan, args.seed, threads, args.force).map_err(Failure::new)?;
    println!(
        "wrote {}: {} bytes, {} tensors, seed {}",
        args.out.display(),
        report.bytes,
        report.tensors,
        args.seed
    );
    Ok(ExitCode::SUCCESS)
}
