//! The command line.

mod aa;
mod archive;
mod archive_args;
mod args;
mod args_claims;
mod args_gate;
mod calibrate;
mod claims;
mod doctor;
mod dry_run;
mod earlier;
mod entry;
mod events;
mod evidence;
mod exit;
mod failure;
mod gate;
mod history;
mod keys;
mod log;
mod new;
mod pipe;
mod quick;
mod record;
mod run;
mod schema;
mod setup;
mod study;
mod workload;
mod workload_args;

pub use args::{Cli, Command, DemoArgs};
pub use entry::main;
pub use exit::Exit;
pub use failure::Failure;
pub use setup::describe;
pub use study::{Outcome, Request, run_to_seal};
