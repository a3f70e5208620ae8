//! The command: the file and its kernels, or ways against each other.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::against::{AgainstArgs, against};
use super::fingerprint::sha256;
use super::levels::levels;
use super::sound::{round_trips, values};
use crate::cli::failure::Failure;
use crate::formats::store;
use crate::kv::KvType;
use crate::tokenizer::Tokenizer;

/// Flags of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The model file (GGUF; for a split one, its first part), or a store packed from one: its
    /// matrices lie otherwise, and other kernels read them
    #[arg(value_name = "MODEL.gguf")]
    model: PathBuf,
    /// Look at the file only: no forward pass
    #[arg(long, conflicts_with = "against")]
    no_forward: bool,
    /// Format of the K/V cache in all forward passes
    #[arg(long, value_enum, default_value_t, value_name = "TYPE")]
    kv_type: KvType,
    #[command(flatten)]
    against: AgainstArgs,
}

/// Prints a line for each check; exit code 1 when any found something.
pub fn run(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    if args.against.is_asked_for() {
        return against(&args.model, &args.against, args.kv_type);
    }
    let at =
        |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", args.model.display()));
    let file = store::open_model(&args.model).map_err(|error| at(&error))?;
    println!("ok       structure: {} tensors", file.tensors().len());
    let tokenizer = Tokenizer::from_metadata(file.metadata()).map_err(|error| at(&error))?;
    let mut findings = values(&file);
    report("values: every scale and weight is a number", &findings);
    let lost = round_trips(&tokenizer);
    report("tokenizer: texts survive encoding and decoding", &lost);
    findings.extend(lost);
    if !args.no_forward && findings.is_empty() {
        let differing = levels(&args.model, args.kv_type)?;
        report(
            "kernels: every instruction-set level gives the same bits",
            &differing,
        );
        findings.extend(differing);
    }
    for part in file.paths() {
        println!("sha256   {}  {}", sha256(part)?, part.display());
    }
    if findings.is_empty() {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

fn report(what: &str, findings: &[String]) {
    if findings.is_empty() {
        println!("ok       {what}");
    }
    for finding in findings {
        println!("FINDING  {finding}");
    }
}
