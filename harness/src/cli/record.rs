//! `palindrome record`.

use super::workload_args::RecordArgs;
use super::{Exit, Failure};
use crate::session::Cancel;
use crate::workload::record::{Recorder, Stopped};
use crate::workload::{WorkloadError, write_starter};

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

/// Records until it is interrupted, which is the way to end it.
pub fn record(args: &RecordArgs) -> Result<Exit, Failure> {
    let cancel = Cancel::on_interrupt()
        .map_err(|e| Failure::new(Exit::HostGuard, format!("cannot listen for Ctrl-C: {e}")))?;
    let recorder = Recorder::begin(args.upstream.clone(), args.listen, &args.out)?;
    let address = recorder
        .address()
        .map_err(|e| Failure::new(Exit::Server, format!("the recorder's socket failed: {e}")))?;
    if !address.ip().is_loopback() {
        eprintln!(
            "! {address} can be reached by other machines, and requests go on as if they came from here"
        );
    }
    // On standard output, for a program that waits for it.
    println!("http://{address}");
    eprintln!(
        "recording what goes from there to {} into {}; Ctrl-C ends it",
        args.upstream.url(),
        args.out.display()
    );
    let Stopped { kept } = recorder.run(&|| cancel.is_set(), &|line| eprintln!("{line}"))?;
    let left_out = match kept.left_out {
        0 => String::new(),
        n => format!(", {n} not kept (the index says why)"),
    };
    let redacted = match kept.redacted {
        0 => String::new(),
        n => format!(", secrets redacted in {n} of them"),
    };
    eprintln!(
        "{}: {} bodies{redacted}{left_out}",
        args.out.display(),
        kept.bodies
    );
    if kept.bodies == 0 {
        return Ok(Exit::NothingMeasured);
    }
    let study = write_starter(&args.out)?;
    eprintln!("a study over them, to be filled in: {}", study.display());
    Ok(Exit::Done)
}
