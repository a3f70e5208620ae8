//! Parses arguments and runs the command.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

use super::{bench, info, probe, run, serve, store, synth, verify};
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
    /// Pack a model into a store, which is read faster
    Pack(store::PackArgs),
    /// Turn a store back into its model, or check that it could be
    Unpack(store::UnpackArgs),
    /// Measure this machine's limits: memory, arithmetic, disk
    Probe(probe::ProbeArgs),
    /// Time prompts and decoding at given lengths
    Bench(Box<bench::BenchArgs>),
    /// Check a model file and this machine's kernels on it
    Verify(verify::VerifyArgs),
}

/// Runs the program: 0 when all went well, 2 when the arguments were wrong, else 1.
pub fn main() -> ExitCode {
    super::pipe::end_with_the_reader();
    let outcome = match Cli::parse_from(spelled_out(std::env::args_os())).command {
        Command::Serve(args) => serve::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Synth(args) => synth::run(&args),
        Command::Pack(args) => store::pack(&args),
        Command::Unpack(args) => store::unpack(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Bench(args) => bench::run(&args),
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

/// Spells out llama-server's `-np` of `serve`: it has two letters behind one dash, which is two
/// flags to the parser.
fn spelled_out(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    if args.get(1).is_some_and(|command| command == "serve") {
        for arg in args.iter_mut().skip(2).filter(|arg| *arg == "-np") {
            *arg = "--parallel".into();
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parallel(args: &[&str]) -> Result<u16, String> {
        let args = std::iter::once("palindrome-engine").chain(args.iter().copied());
        match Cli::try_parse_from(spelled_out(args.map(OsString::from))) {
            Ok(Cli {
                command: Command::Serve(args),
            }) => Ok(args.parallel()),
            Ok(other) => Err(format!("{other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn parallel_has_llama_servers_spellings() {
        assert_eq!(parallel(&["serve", "m.gguf"]), Ok(4));
        assert_eq!(parallel(&["serve", "m.gguf", "--parallel", "16"]), Ok(16));
        assert_eq!(parallel(&["serve", "-np", "1", "m.gguf"]), Ok(1));
        let refused = parallel(&["serve", "m.gguf", "--parallel", "0"]).unwrap_err();
        assert!(refused.contains("1..=256"), "{refused}");
        assert!(parallel(&["run", "m.gguf", "-np", "2"]).is_err());
    }
}
