//! What may be typed after `palindrome gate`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

/// How a judgement is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GateFormat {
    /// One screen, for people
    Text,
    /// Annotations on standard output, and a job summary where GITHUB_STEP_SUMMARY names a file
    Github,
    /// One object
    Json,
    /// JUnit XML
    Junit,
}

/// `palindrome gate`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("baseline").args(["baseline_program", "baseline_rev"]))]
pub struct GateArgs {
    /// A study file to run and judge, or an archive to audit and judge
    #[arg(value_name = "STUDY.toml|ARCHIVE")]
    pub what: PathBuf,
    /// Run the study's arm twice in mirrored order: with this program as the baseline, and as it is
    #[arg(long, value_name = "FILE")]
    pub baseline_program: Option<PathBuf>,
    /// The same with the arm built from this git revision as the baseline
    #[arg(long, value_name = "REV", conflicts_with = "baseline_program")]
    pub baseline_rev: Option<String>,
    /// What the baseline is called, such as its commit
    #[arg(long, value_name = "TEXT", requires = "baseline")]
    pub baseline_label: Option<String>,
    /// Which arm has a baseline [default: the last]
    #[arg(long, value_name = "NAME", requires = "baseline")]
    pub arm: Option<String>,
    /// Where the archive is made [default: archives/]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Run even if the study cannot settle its own margin
    #[arg(long)]
    pub yes: bool,
    /// How it is printed [default: github where GITHUB_ACTIONS is set, else text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<GateFormat>,
    /// Write JUnit XML there, too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print one JSON object: the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}
