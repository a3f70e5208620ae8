//! Building the bundled engine with the cargo that is there.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::cli::{Exit, Failure};

/// How it is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// For figures.
    Release,
    /// For tests: optimised too, with checks.
    Dev,
}

/// The lines of `cargo build --message-format json` that matter here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
}

/// Builds `palindrome-engine` of the checkout at `root` and gives its path. cargo's own progress
/// goes to standard error.
pub fn build_engine(root: &Path, profile: Profile) -> Result<PathBuf, Failure> {
    let failed =
        |why: String| Failure::new(Exit::Server, format!("the engine cannot be built: {why}"));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(&cargo);
    command
        .current_dir(root)
        // Without `-p`: features are those of both crates, as in the build of this program, so what
        // they share is compiled already.
        .args(["build", "--bin", "palindrome-engine"])
        .args(["--message-format", "json-render-diagnostics"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if profile == Profile::Release {
        command.arg("--release");
    }
    let mut child = command.spawn().map_err(|e| {
        failed(format!(
            "{} does not start ({e}); install Rust, or add ~/.cargo/bin to PATH",
            cargo.display()
        ))
    })?;
    let mut executable = None;
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|out| BufReader::new(out).lines())
    {
        let line = line.map_err(|e| failed(format!("cargo's output breaks off: {e}")))?;
        // Other kinds of message have other fields.
        if let Ok(message) = serde_json::from_str::<Message>(&line)
            && message.reason == "compiler-artifact"
        {
            executable = message.executable.or(executable);
        }
    }
    let status = child.wait().map_err(|e| failed(e.to_string()))?;
    if !status.success() {
        return Err(failed(format!(
            "cargo ended with {status}; its messages are above"
        )));
    }
    executable.ok_or_else(|| failed("cargo named no executable".to_owned()))
}
