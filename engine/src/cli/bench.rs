//! `bench`: prompt and decode rates.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;

use super::args::{LoadArgs, load_failure};
use super::failure::Failure;
use super::probe::{print, seconds};
use crate::bench::{BenchError, Format, Limits, Settings, Test, render, run as run_tests};
use crate::probe::{Ceilings, Host, Plan, Quantity, Report, probe};
use crate::team::physical_cores;

/// Longest prompt, generation and depth, in tokens.
const MOST: i64 = 1 << 24;

/// Flags of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Prompt lengths in tokens; 0 for none
    #[arg(long, short = 'p', value_name = "N,...", value_delimiter = ',', default_value = "512", value_parser = clap::value_parser!(u32).range(..=MOST))]
    n_prompt: Vec<u32>,
    /// Numbers of tokens to decode; 0 for none
    #[arg(long, short = 'n', value_name = "N,...", value_delimiter = ',', default_value = "128", value_parser = clap::value_parser!(u32).range(..=MOST))]
    n_gen: Vec<u32>,
    /// Tokens in the K/V cache before each test
    #[arg(long, short = 'd', value_name = "N,...", value_delimiter = ',', default_value = "0", value_parser = clap::value_parser!(u32).range(..=MOST))]
    n_depth: Vec<u32>,
    /// Repetitions of each test
    #[arg(long, short = 'r', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: u32,
    /// Numbers of threads [default: physical cores]
    #[arg(long, short = 't', value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
    /// Formats to print, one after the other
    #[arg(
        long,
        short = 'o',
        value_name = "FORMAT,...",
        value_enum,
        value_delimiter = ',',
        default_value = "md"
    )]
    output: Vec<Format>,
    /// Write PREFIX.md, PREFIX.json, PREFIX.csv instead of printing
    #[arg(long, value_name = "PREFIX")]
    out: Option<PathBuf>,
    /// Do not run each test once before
    #[arg(long)]
    no_warmup: bool,
    /// Seed of the random tokens
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Take the machine's limits from `probe --json` [default: measure them before]
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["no_probe", "probe_seconds"])]
    probe: Option<PathBuf>,
    /// Time to measure the limits, for each number of threads
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    probe_seconds: f64,
    /// Give no shares of limits
    #[arg(long, conflicts_with = "probe_seconds")]
    no_probe: bool,
}

/// Runs the tests and prints.
pub fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let tests = tests(args)?;
    let threads: Vec<usize> = match args.threads.as_slice() {
        [] => vec![physical_cores()],
        threads => threads.iter().map(|&n| usize::from(n)).collect(),
    };
    let mut load = args.load.clone();
    load.ctx = Some(context(args.load.ctx, &tests)?);
    let mut formats: Vec<Format> = Vec::new();
    for &format in &args.output {
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    let settings = Settings {
        model_filename: args.load.model.display().to_string(),
        repetitions: args.repetitions as usize,
        warmup: !args.no_warmup,
        seed: args.seed,
    };
    // What can be wrong is found before anything is measured.
    load.options(None)?;
    std::fs::metadata(&load.model).map_err(|error| load_failure(&load.model, error))?;
    // Quiet when standard error is no terminal.
    let spinner = ProgressBar::new_spinner();
    let mut progress = |what: &str| {
        spinner.set_message(what.to_owned());
        spinner.tick();
    };
    let file = load.file()?;
    let limits = limits(args, &threads, &mut progress)?;
    let mut rows = Vec::new();
    for (&threads, limits) in threads.iter().zip(&limits) {
        let options = load.options(Some(threads))?;
        let done = run_tests(&file, &options, &tests, &settings, limits, &mut progress);
        rows.extend(done.map_err(|error| match error {
            BenchError::Forward { .. } => Failure::new(error),
            error => load_failure(&load.model, error),
        })?);
    }
    spinner.finish_and_clear();
    if let Some(prefix) = &args.out {
        for format in formats {
            let mut path = prefix.clone().into_os_string();
            path.push(format!(".{}", format.extension()));
            std::fs::write(&path, render(format, &rows)).map_err(|error| {
                Failure::new(format!(
                    "cannot write {}: {error}",
                    PathBuf::from(&path).display()
                ))
            })?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let texts: Vec<String> = formats.iter().map(|&f| render(f, &rows)).collect();
    print(&texts.join("\n"))
}

fn tests(args: &BenchArgs) -> Result<Vec<Test>, Failure> {
    let list = |values: &[u32]| -> Vec<usize> { values.iter().map(|&n| n as usize).collect() };
    let tests = Test::all(
        &list(&args.n_prompt),
        &list(&args.n_gen),
        &list(&args.n_depth),
    );
    if tests.is_empty() {
        return Err(
            Failure::new("there is nothing to measure: every -p and -n is 0")
                .hint("-p 512 measures prompts, -n 128 decoding"),
        );
    }
    Ok(tests)
}

/// The context that the longest test needs, or the one asked for where that is enough.
fn context(asked: Option<u32>, tests: &[Test]) -> Result<u32, Failure> {
    let longest = tests.iter().max_by_key(|test| test.context());
    let needed = longest.map_or(1, |test| test.context() as u32);
    match asked {
        Some(ctx) if ctx < needed => {
            let test = longest.map(ToString::to_string).unwrap_or_default();
            Err(
                Failure::new(format!("--ctx is {ctx} and {test} needs {needed} tokens"))
                    .hint("without --ctx, the context is as long as the longest test needs"),
            )
        }
        Some(ctx) => Ok(ctx),
        None => Ok(needed),
    }
}

/// The machine's limits for each number of threads.
fn limits(
    args: &BenchArgs,
    threads: &[usize],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Limits>, Failure> {
    if args.no_probe {
        return Ok(vec![Limits::default(); threads.len()]);
    }
    let host = Host::look();
    let report = if let Some(path) = &args.probe {
        let report = Report::read(path).map_err(Failure::new)?;
        if report.host.cpu != host.cpu {
            eprintln!(
                "warning: {} is of another processor ({}): shares of its limits say little here",
                path.display(),
                report.host.cpu.as_deref().unwrap_or("unnamed")
            );
        }
        report
    } else {
        let mut distinct = threads.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let each = seconds("--probe-seconds", args.probe_seconds)?;
        let plan = Plan {
            budget: each * distinct.len() as u32,
            threads: distinct,
            ceilings: Ceilings::Shares,
        };
        probe(&plan, None, progress).map_err(|error| {
            Failure::new(error).hint("--no-probe leaves the shares of the machine's limits out")
        })?
    };
    let find = |quantity: Quantity, n: usize| {
        let figure = report.find(quantity, n);
        figure.map(|figure| figure.best).ok_or_else(|| {
            Failure::new(format!(
                "the probe has no {} with {n} threads",
                quantity.title()
            ))
            .hint(format!(
                "`palindrome-engine probe --threads {n} --json` measures it"
            ))
        })
    };
    threads
        .iter()
        .map(|&n| {
            Ok(Limits {
                dram_bytes_per_s: Some(find(Quantity::DramRead, n)?),
                int8_ops_per_s: Some(find(Quantity::Int8Dot, n)?),
                last_level_cache_bytes: report.host.last_level_cache_bytes,
            })
        })
        .collect()
}
