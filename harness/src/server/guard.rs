//! No server survives its runner. The kernel ends a server when the runner dies (see `inner`), but
//! not what the server itself started. So a second process of this program waits beside each server:
//! it reads a pipe whose other end only the runner holds, and when that closes without a word it
//! kills the server's process group and every process that carries the server's mark in its
//! environment, which catches those that left the group.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::host::now_ns;

/// The environment variable that marks a server and whatever it starts.
pub(super) const MARK: &str = "PALINDROME_SERVER";
/// What the runner writes when the server was stopped.
const DISMISSED: &str = "done";
/// How often the processes are looked through: one may fork while it is killed.
const SWEEPS: u32 = 5;

/// A mark that no other server on this machine has.
pub(super) fn new_mark() -> String {
    format!("{}-{}", std::process::id(), now_ns())
}

/// The process that waits beside a server. It leaves when this is dropped, having done nothing.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts it; `own` is this program.
    pub(super) fn start(own: &Path, mark: &str) -> io::Result<Self> {
        let mut child = Command::new(own)
            .args(["server-guard", mark])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // An interrupt typed at the terminal is not for it.
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Tells it the server's process group.
    pub(super) fn watch(&mut self, group: u32) -> io::Result<()> {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        writeln!(self.pipe.as_mut().ok_or_else(closed)?, "{group}")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // A guard that is gone needs no word.
            let _ = writeln!(pipe, "{DISMISSED}");
        }
        let _ = self.child.wait();
    }
}

/// `server-guard MARK`: waits for the runner's word or its end.
pub(super) fn run(mark: &str) -> ExitCode {
    let mut group = None;
    for line in BufReader::new(io::stdin()).lines() {
        match line.as_deref() {
            Ok(DISMISSED) => return ExitCode::SUCCESS,
            Ok(said) => group = said.parse().ok(),
            Err(_) => break,
        }
    }
    if let Some(group) = group.and_then(Pid::from_raw) {
        // Fails only when nobody is left in it.
        let _ = kill_process_group(group, Signal::KILL);
    }
    end_marked(mark);
    ExitCode::SUCCESS
}

/// Kills every process that carries a mark in its environment; nothing where the system does not
/// show that.
pub(super) fn end_marked(mark: &str) {
    for _ in 0..SWEEPS {
        let found = marked(mark);
        if found.is_empty() {
            return;
        }
        for pid in found {
            // Fails only when it has ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn marked(mark: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let carries = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|entry| entry == wanted)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| carries(*pid))
        .filter_map(Pid::from_raw)
        .collect()
}
