//! Commands that this program gives to itself; never listed in its help.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::getppid;

use super::mock::Script;

/// Runs `exec-child`, `server-guard` or `mock-server` if that is the first argument; `None` for all else.
/// Called before the arguments are parsed for people.
pub fn inner_command() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    match args.next()?.to_str()? {
        "exec-child" => Some(exec_child(args)),
        "server-guard" => Some(super::guard::run(args.next()?.to_str()?)),
        "mock-server" => Some(mock_server(args)),
        _ => None,
    }
}

/// `exec-child PARENT -- PROGRAM ARGS...`: becomes the program, to be killed with the parent.
fn exec_child(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let parent = args.next().and_then(|a| a.to_str()?.parse::<i32>().ok());
    let (Some(parent), Some(program)) = (parent, args.nth(1)) else {
        eprintln!("usage: exec-child PARENT -- PROGRAM [ARGS]");
        return ExitCode::from(2);
    };
    if let Err(e) = die_with_parent() {
        eprintln!("cannot tie the server's life to the harness: {e}");
        return ExitCode::from(96);
    }
    // The parent may have died before the line above took hold.
    if getppid().is_none_or(|p| p.as_raw_nonzero().get() != parent) {
        return ExitCode::from(96);
    }
    let failed = Command::new(&program).args(args).exec();
    eprintln!(
        "cannot start {}: {failed}",
        PathBuf::from(program).display()
    );
    ExitCode::from(96)
}

/// Asks the kernel to end this process with its parent.
#[cfg(target_os = "linux")]
fn die_with_parent() -> std::io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Other systems have no such signal: there a server outlives a runner that is killed outright, and
/// its process group is what ends it otherwise.
#[cfg(not(target_os = "linux"))]
fn die_with_parent() -> std::io::Result<()> {
    Ok(())
}

/// `mock-server --port PORT --script FILE [--gap-ms N]`.
fn mock_server(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<String> = args.map(|a| a.to_string_lossy().into_owned()).collect();
    let value = |flag: &str| {
        args.iter()
            .position(|a| a == flag)
            .and_then(|i| args.get(i + 1))
    };
    let (Some(port), Some(script)) = (
        value("--port").and_then(|p| p.parse().ok()),
        value("--script"),
    ) else {
        eprintln!("usage: mock-server --port PORT --script FILE [--gap-ms N]");
        return ExitCode::from(2);
    };
    let script = Script::load(script.as_ref()).map(|script| {
        let gap_ms = value("--gap-ms").and_then(|ms| ms.parse().ok());
        gap_ms.map_or(script.clone(), |ms| script.with_gap(ms))
    });
    match script.and_then(|script| super::mock::serve(port, script)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("mock-server: {e}");
            ExitCode::from(96)
        }
    }
}
