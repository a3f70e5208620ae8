//! What the tests of whole commands share: a tiny model, the binary, a running server.
#![allow(dead_code, missing_docs, reason = "each test file uses its part")]

pub mod http;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The program, with nothing of the caller's terminal.
pub fn engine() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palindrome-engine"));
    // Stores of the tests' models stay out of the user's cache.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub fn output(args: &[&str]) -> Output {
    engine().args(args).output().unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder with a model of random weights in it.
pub struct Model {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl Model {
    pub fn tiny() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.gguf");
        let made = output(&["synth", path.to_str().unwrap(), "--seed", "3"]);
        assert!(made.status.success(), "{}", stderr(&made));
        Self { folder, path }
    }
    pub fn arg(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

/// A running `serve`; killed when dropped.
pub struct Server {
    pub child: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts on a free port and waits for the model.
    pub fn start(model: &Path, flags: &[&str]) -> Self {
        let mut child = engine()
            .arg("serve")
            .arg(model)
            .args(["--port", "0", "--threads", "2"])
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let mut address = None;
        while address.is_none() {
            let mut line = String::new();
            assert!(
                lines.read_line(&mut line).unwrap() > 0,
                "{}",
                log.lock().unwrap()
            );
            log.lock().unwrap().push_str(&line);
            address = line
                .trim()
                .strip_prefix("listening on http://")
                .map(|address| address.parse().unwrap());
        }
        let shared = log.clone();
        let reader = std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut log = shared.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let address = address.unwrap();
        eventually("the model is loaded", || {
            http::get(address, "/health").status == 200
        });
        Self {
            child,
            address,
            log,
            reader: Some(reader),
        }
    }
    /// Asks it to stop and gives its exit code and all that it said.
    pub fn stop(mut self) -> (Option<i32>, String) {
        terminate(&self.child);
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        let log = self.log.lock().unwrap().clone();
        (status.code(), log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// SIGTERM.
pub fn terminate(child: &Child) {
    let done = Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(done.success());
}

/// Waits for what another process is about to do.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never came true: {what}");
}
