//! What may be typed after `palindrome archive`, and `palindrome keygen`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `palindrome archive`.
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// List a folder's archives: when, study, arms, verdict, sealed or unfinished
    Ls(LsArgs),
    /// Say what an archive holds
    Show(ShowArgs),
    /// Say which fields of two archives differ: study, protocol, host, arms, figures
    Diff(DiffArgs),
    /// Put a sealed archive into one compressed file
    Pack(PackArgs),
    /// Take an archive out of such a file, bit for bit
    Unpack(UnpackArgs),
    /// Sign sealed archives, in minisign's format
    Sign(SignArgs),
    /// Add archives to the folder's index, or check it: what was removed or replaced shows
    Index(IndexArgs),
    /// Describe an archive as an RO-Crate, in a file beside it
    RoCrate(RoCrateArgs),
}

/// `palindrome archive ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// The folder
    #[arg(value_name = "FOLDER", default_value = "archives")]
    pub folder: PathBuf,
    /// Print one JSON object an archive
    #[arg(long)]
    pub json: bool,
}

/// `palindrome archive show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The archive's folder
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `palindrome archive diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The first archive
    #[arg(value_name = "FIRST")]
    pub first: PathBuf,
    /// The second archive
    #[arg(value_name = "SECOND")]
    pub second: PathBuf,
    /// List every figure that differs, not only the ratios between arms
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `palindrome archive pack`.
#[derive(Debug, Args)]
pub struct PackArgs {
    /// The archive's folder
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The file to make [default: the archive's name and .tar.zst, here]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `palindrome archive unpack`.
#[derive(Debug, Args)]
pub struct UnpackArgs {
    /// The packed archive
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where its folder is made
    #[arg(long, short = 'o', value_name = "FOLDER", default_value = "archives")]
    pub out: PathBuf,
}

/// `palindrome archive sign`.
#[derive(Debug, Args)]
pub struct SignArgs {
    /// Archive folders
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// Secret key, from `palindrome keygen` or minisign
    #[arg(long, value_name = "KEY")]
    pub key: PathBuf,
}

/// `palindrome archive index`.
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Names of archives to add [default: all sealed ones of the folder that are not in it]
    #[arg(value_name = "NAME", conflicts_with = "check")]
    pub names: Vec<String>,
    /// The folder, whose index.json this is
    #[arg(long, value_name = "FOLDER", default_value = "archives")]
    pub folder: PathBuf,
    /// Compare the archives with the index; change nothing
    #[arg(long)]
    pub check: bool,
    /// With --check: whose signature the index must have
    #[arg(long, value_name = "PUBLIC KEY", requires = "check")]
    pub key: Option<String>,
    /// Record that an archive is no longer kept
    #[arg(long, value_name = "NAME", requires = "because", conflicts_with_all = ["check", "names"])]
    pub withdraw: Option<String>,
    /// Why it is no longer kept
    #[arg(long, value_name = "TEXT", requires = "withdraw")]
    pub because: Option<String>,
    /// Sign the index with this secret key
    #[arg(long, value_name = "KEY", conflicts_with = "check")]
    pub sign: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `palindrome archive ro-crate`.
#[derive(Debug, Args)]
pub struct RoCrateArgs {
    /// The archive's folder
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Address of the licence under which the archive is published
    #[arg(long, value_name = "URL")]
    pub licence: Option<String>,
}

/// `palindrome keygen`.
#[derive(Debug, Args)]
pub struct KeygenArgs {
    /// Where palindrome.key and palindrome.pub are made
    #[arg(long, short = 'o', value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
    /// No password: whoever reads the file can sign (for machines that sign on their own)
    #[arg(long, short = 'W')]
    pub no_password: bool,
}
