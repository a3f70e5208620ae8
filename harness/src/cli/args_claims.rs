//! What may be typed after `palindrome claim`, `claims`, `history` and `log`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::derive::Label;

/// `palindrome claim`.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// Archive folders
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// Print one JSON object an archive
    #[arg(long)]
    pub json: bool,
}

/// `palindrome claims`.
#[derive(Debug, Subcommand)]
pub enum ClaimsCommand {
    /// Hold the numbers in a text's marked blocks to their archives
    Check(ClaimsCheckArgs),
}

/// `palindrome claims check`.
#[derive(Debug, Args)]
pub struct ClaimsCheckArgs {
    /// Markdown files
    #[arg(value_name = "FILE.md", required = true)]
    pub files: Vec<PathBuf>,
    /// Where archives lie [default: the nearest `archives` at or above each file]
    #[arg(long, value_name = "FOLDER")]
    pub archives: Option<PathBuf>,
    /// Print one JSON object a file
    #[arg(long)]
    pub json: bool,
}

/// `palindrome history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// A metric by its name in figures.json: decode_rate, ttft, peak_rss, engine_decode_rate ...
    #[arg(value_name = "METRIC")]
    pub metric: String,
    /// Folder of archives
    #[arg(value_name = "FOLDER", default_value = "archives")]
    pub folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `palindrome log`.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Append a record: what was tried, and what came of it
    Add(LogAddArgs),
    /// Whether every record stands as and where it was written
    Check(LogCheckArgs),
}

/// `palindrome log add`.
#[derive(Debug, Args)]
pub struct LogAddArgs {
    /// What was expected, and why
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub hypothesis: String,
    /// What was changed to see
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub change: String,
    /// What was seen, and what was decided
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub outcome: String,
    /// How the outcome is known: measured, calculated, simulated, assumed
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub label: Label,
    /// An archive that shows it, by its folder's name
    #[arg(long, value_name = "NAME")]
    pub archive: Vec<String>,
    /// The record that this one corrects, by number
    #[arg(long, value_name = "N")]
    pub corrects: Option<u32>,
    /// Its date, not before that of the last record [default: today, UTC]
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub date: Option<String>,
    /// The log
    #[arg(long, value_name = "FILE", default_value = "reports/log.md")]
    pub file: PathBuf,
}

/// `palindrome log check`.
#[derive(Debug, Args)]
pub struct LogCheckArgs {
    /// The log
    #[arg(value_name = "FILE", default_value = "reports/log.md")]
    pub file: PathBuf,
}

fn label(word: &str) -> Result<Label, String> {
    let all = [
        Label::Measured,
        Label::Calculated,
        Label::Simulated,
        Label::Assumed,
    ];
    let found = all.iter().find(|l| l.word().eq_ignore_ascii_case(word));
    found.copied().ok_or_else(|| {
        let words = all.map(|l| l.word().to_lowercase());
        format!("not one of {}", words.join(", "))
    })
}
