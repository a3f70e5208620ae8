//! What may be typed about workloads.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::workload::Sampling;
use crate::workload::import::{Format, Turns};
use crate::workload::record::Upstream;

/// `palindrome record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The server that requests are passed on to
    #[arg(long, value_name = "URL")]
    pub upstream: Upstream,
    /// Folder of the recording: new or empty
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Where clients connect; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
}

/// `palindrome workload`.
#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// Turn a public format into a folder of bodies, every sampling field spelled out
    Import(Box<ImportArgs>),
    /// Show tokens, turns and what would make servers answer differently; fails where that is unfair
    Check(CheckArgs),
    /// Print a study file over a folder of bodies, to be filled in
    Study(StarterArgs),
}

/// A format, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Conversations of `from` and `value`
    Sharegpt,
    /// Arrival times, lengths and block ids; the text is made
    Mooncake,
    /// One object with `messages` a line
    Jsonl,
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Sharegpt => Self::Sharegpt,
            FormatArg::Mooncake => Self::Mooncake,
            FormatArg::Jsonl => Self::Jsonl,
        }
    }
}

/// Turns, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TurnsArg {
    /// The user's first one
    First,
    /// The user's last one, with everything before it
    Last,
    /// Each of the user's, with everything before it
    Each,
}

impl From<TurnsArg> for Turns {
    fn from(arg: TurnsArg) -> Self {
        match arg {
            TurnsArg::First => Self::First,
            TurnsArg::Last => Self::Last,
            TurnsArg::Each => Self::Each,
        }
    }
}

/// `palindrome workload import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file to import
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What it is
    #[arg(long, value_enum)]
    pub format: FormatArg,
    /// Folder to make: new or empty
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Only the first N requests
    #[arg(long, value_name = "N")]
    pub first: Option<usize>,
    /// N requests at random, in the order of the file
    #[arg(long, value_name = "N")]
    pub choose: Option<usize>,
    /// Seed of that choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub choose_seed: u64,
    /// Only prompts of at least so many tokens (as the trace states them, or ASSUMED by bytes)
    #[arg(long, value_name = "N")]
    pub min_tokens: Option<u64>,
    /// Only prompts of at most so many tokens
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Which turns of a conversation become requests
    #[arg(long, value_enum, default_value = "last")]
    pub turns: TurnsArg,
    /// Leave bad lines out and say how many
    #[arg(long)]
    pub skip_bad: bool,
    /// `max_tokens` of each body; a trace's own lengths go before it
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    pub answer_tokens: u64,
    /// Where the bodies will be posted
    #[arg(long, value_name = "PATH", default_value = "/v1/chat/completions", value_parser = path)]
    pub path: String,
    /// `model` of each body
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Tokens of a block of a Mooncake trace
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..))]
    pub block_tokens: u64,
    /// Tokens that a word of the text made for a Mooncake trace is taken to have
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive)]
    pub tokens_per_word: f64,
    /// Bytes that a token of a conversation is taken to have
    #[arg(long, value_name = "X", default_value_t = 4.0, value_parser = positive)]
    pub bytes_per_token: f64,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Sampling fields of imported bodies.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling fields of every body")]
pub struct SamplingArgs {
    /// 0 chooses the likeliest token
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub temperature: f64,
    /// 0 is off
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub top_k: u32,
    /// 1 is off
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub top_p: f64,
    /// 0 is off
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub min_p: f64,
    /// Seed of each answer
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u64,
    /// 1 is off
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub repeat_penalty: f64,
    /// 0 is off
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub presence_penalty: f64,
    /// 0 is off
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub frequency_penalty: f64,
    /// Whether answers are streamed
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub stream: bool,
    /// Whether servers may take a prompt's beginning from their cache
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub cache_prompt: bool,
    /// Answers go on to their limit (always so for lengths that a trace states)
    #[arg(long)]
    pub ignore_eos: bool,
}

impl From<&SamplingArgs> for Sampling {
    fn from(args: &SamplingArgs) -> Self {
        Self {
            temperature: args.temperature,
            top_k: args.top_k,
            top_p: args.top_p,
            min_p: args.min_p,
            seed: args.seed,
            repeat_penalty: args.repeat_penalty,
            presence_penalty: args.presence_penalty,
            frequency_penalty: args.frequency_penalty,
            stream: args.stream,
            cache_prompt: args.cache_prompt,
            ignore_eos: args.ignore_eos,
        }
    }
}

/// `palindrome workload check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Folders of bodies, bodies (.json), or study files (.toml)
    #[arg(value_name = "FOLDER|BODY|STUDY.toml", required = true)]
    pub what: Vec<PathBuf>,
    /// Count tokens with this server's `/apply-template` and `/tokenize`: http://127.0.0.1:PORT
    #[arg(long, value_name = "URL", value_parser = loopback, conflicts_with = "model")]
    pub server: Option<u16>,
    /// Count tokens with this model's tokenizer, by the bundled engine
    #[arg(long, value_name = "MODEL.gguf")]
    pub model: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `palindrome workload study`.
#[derive(Debug, Args)]
pub struct StarterArgs {
    /// A folder of bodies, recorded, imported or plain
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|x| x.is_finite() && *x > 0.0)
        .ok_or_else(|| "not a number above 0".to_owned())
}

fn path(text: &str) -> Result<String, String> {
    if text.starts_with('/') && !text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Ok(text.to_owned())
    } else {
        Err("a path begins with `/`, as in /v1/completions".to_owned())
    }
}

/// The port of a URL of this machine.
fn loopback(url: &str) -> Result<u16, String> {
    let right = "a server on this machine, as in http://127.0.0.1:8080";
    let rest = url
        .strip_prefix("http://")
        .ok_or(right)?
        .trim_end_matches('/');
    let (host, port) = rest.rsplit_once(':').ok_or(right)?;
    if !matches!(host, "127.0.0.1" | "localhost") {
        return Err(format!(
            "{host:?} is not this machine; give {right} (a forwarded port will do)"
        ));
    }
    port.parse()
        .map_err(|_| format!("{port:?} is no port; give {right}"))
}
