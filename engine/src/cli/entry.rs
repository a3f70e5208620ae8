//! Parses arguments and runs the command.

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

use super::{info, run, serve, synth, verify};
use crate::kernels::Isa;

/// Version and instruction-set level.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{} (isa {})",
        env!("CARGO_PKG_VERSION"),
        Isa::detect().name()
    )
});

/// A mixture-of-experts server whose answers depend on the model file and the tokens alone.
#[derive(Debug, Parser)]
#[command(name = "palindrome-engine", version = VERSION.as_str())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a model over HTTP
    Serve(Box<serve::ServeArgs>),
    /// Continue a prompt, or answer it, on the terminal
    Run(Box<run::RunArgs>),
    /// Show what a model file holds
    Info(info::InfoArgs),
    /// Write a model file of random weights
    Synth(Box<synth::SynthArgs>),
    /// Check a model file and this machine's kernels on it
    Verify(verify::VerifyArgs),
}

/// Runs the program: 0 when all went well, 2 when the arguments were wrong, else 1.
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Synth(args) => synth::run(&args),
        Command::Verify(args) => verify::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
