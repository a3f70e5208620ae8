//! `probe`: what this machine can do at most.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;

use super::failure::Failure;
use crate::probe::{Ceilings, DiskFile, Plan, probe};
use crate::team::physical_cores;

/// Flags of `probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// Time for all figures together, in seconds
    #[arg(long, value_name = "S", default_value_t = 15.0)]
    seconds: f64,
    /// Threads of the figures for all cores [default: physical cores]
    #[arg(long, short = 't', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Read this file for the disk's figures [default: a temporary file, removed at once]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["file_size_mib", "no_disk"])]
    file: Option<PathBuf>,
    /// Size of the temporary file
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    file_size_mib: u32,
    /// Leave the disk alone
    #[arg(long, conflicts_with = "file_size_mib")]
    no_disk: bool,
    /// Print JSON, as `bench --probe` reads it
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub fn run(args: &ProbeArgs) -> Result<ExitCode, Failure> {
    let budget = seconds("--seconds", args.seconds)?;
    let most = args.threads.map_or_else(physical_cores, usize::from);
    let mut threads = vec![1, most];
    threads.dedup();
    let disk = match &args.file {
        _ if args.no_disk => None,
        Some(path) => Some(DiskFile::open(path)),
        None => Some(DiskFile::temporary(
            &std::env::temp_dir(),
            u64::from(args.file_size_mib),
        )),
    };
    let disk = disk.transpose().map_err(Failure::new)?;
    let plan = Plan {
        threads,
        budget,
        ceilings: Ceilings::All,
    };
    // Quiet when standard error is no terminal.
    let spinner = ProgressBar::new_spinner();
    let report = probe(&plan, disk.as_ref(), &mut |what| {
        spinner.set_message(what.to_owned());
        spinner.tick();
    })
    .map_err(Failure::new)?;
    spinner.finish_and_clear();
    let text = if args.json {
        serde_json::to_string_pretty(&report).map_err(Failure::new)? + "\n"
    } else {
        report.table()
    };
    print(&text)
}

/// A time that makes sense.
pub(super) fn seconds(flag: &str, value: f64) -> Result<Duration, Failure> {
    if (0.1..=3600.0).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(Failure::new(format!(
        "{flag} must lie between 0.1 and 3600, got {value}"
    )))
}

/// Prints to standard output; a reader that has gone is no failure.
pub(super) fn print(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
