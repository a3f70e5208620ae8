//! Parses arguments and runs the command.

use std::process::ExitCode;

/// Runs the program.
pub fn main() -> ExitCode {
    if let Some(code) = crate::server::inner_command() {
        return code;
    }
    ExitCode::SUCCESS
}
