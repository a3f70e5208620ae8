//! The `palindrome-engine` binary: parses the command line and dispatches.

use std::process::ExitCode;

fn main() -> ExitCode {
    palindrome_engine::cli::main()
}
