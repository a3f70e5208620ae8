//! Parses arguments and runs the command.

use std::process::ExitCode;

use clap::Parser;

use super::args::{Cli, Command};
use super::{
    Exit, Failure, aa, archive, calibrate, claims, doctor, evidence, gate, history, keys, log, new,
    record, run, schema, setup, workload,
};
use crate::demo;
use crate::server::inner_command;

/// Runs the program.
pub fn main() -> ExitCode {
    super::pipe::end_with_the_reader();
    if let Some(code) = inner_command() {
        return code;
    }
    match dispatch(Cli::parse().command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            failure.exit.into()
        }
    }
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Demo(args) => demo::demo(args),
        Command::Run(args) => run::run(args),
        Command::New(args) => new::new_study(&args),
        Command::Schema(of) => Ok(schema::schema(of)),
        Command::Audit(args) => evidence::audit_all(&args),
        Command::Report(args) => evidence::report_all(&args),
        Command::Gate(args) => gate::gate(&args),
        Command::Claim(args) => claims::claim(&args),
        Command::Claims(command) => claims::claims_command(command),
        Command::History(args) => history::history(&args),
        Command::Log(command) => log::log(command),
        Command::Archive(command) => archive::archive(command),
        Command::Keygen(args) => keys::keygen(&args),
        Command::Setup(command) => setup::setup(command),
        Command::Aa(args) => aa::aa(args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Record(args) => record::record(&args),
        Command::Workload(command) => workload::workload(&command),
        Command::Doctor(args) => Ok(doctor::doctor(&args)),
    }
}
