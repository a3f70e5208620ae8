//! `palindrome log`.

use std::path::Path;
use std::time::SystemTime;

use super::args_claims::{LogAddArgs, LogCheckArgs, LogCommand};
use super::{Exit, Failure};
use crate::archive::utc_rfc3339;
use crate::log::{Entry, Log, LogError};

/// Adds a record, or checks all of them.
pub fn log(command: LogCommand) -> Result<Exit, Failure> {
    match command {
        LogCommand::Add(args) => add(args),
        LogCommand::Check(args) => check(&args),
    }
}

fn add(args: LogAddArgs) -> Result<Exit, Failure> {
    let mut log = Log::open(&args.file)?;
    for name in &args.archive {
        let folder = args.file.parent().unwrap_or(Path::new("."));
        let place = folder.join("../archives").join(name);
        if !place.is_dir() {
            let message = format!(
                "there is no archive {}: give its folder's name",
                place.display()
            );
            return Err(Failure::new(Exit::Usage, message));
        }
    }
    let today = || utc_rfc3339(SystemTime::now()).chars().take(10).collect();
    let number = log.add(&Entry {
        date: args.date.unwrap_or_else(today),
        label: args.label,
        hypothesis: args.hypothesis,
        change: args.change,
        outcome: args.outcome,
        archives: args.archive,
        corrects: args.corrects,
    })?;
    println!("record {number} in {}", args.file.display());
    Ok(Exit::Done)
}

fn check(args: &LogCheckArgs) -> Result<Exit, Failure> {
    if !args.file.is_file() {
        let message = format!("there is no log {}", args.file.display());
        return Err(Failure::new(Exit::Usage, message));
    }
    let log = Log::open(&args.file)?;
    println!(
        "{}: {} records, each as and where it was written",
        args.file.display(),
        log.records
    );
    Ok(Exit::Done)
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        let exit = match &error {
            LogError::Broken { .. } => Exit::Audit,
            LogError::Io(..)
            | LogError::Entry(_)
            | LogError::Order { .. }
            | LogError::Corrects(..) => Exit::Usage,
        };
        Self::new(exit, error)
    }
}
