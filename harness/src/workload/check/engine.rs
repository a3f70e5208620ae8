//! The bundled engine, serving a model for its tokenizer.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::replay::{Request, send};
use crate::server::{describe, free_port};

/// Longest until it is ready: large models are read first.
const READY_LIMIT: Duration = Duration::from_mins(10);
/// Between looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of its last words an error shows.
const TAIL_BYTES: usize = 2000;

/// A running engine; dropping it ends it.
#[derive(Debug)]
pub struct EngineServer {
    child: Child,
    port: u16,
}

impl EngineServer {
    /// Starts `engine` on the model, tied to the life of this program (whose file is `palindrome`),
    /// and waits until it is ready.
    pub fn start(
        palindrome: &Path,
        engine: &Path,
        model: &Path,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, String> {
        let port = free_port().map_err(|e| format!("no free port: {e}"))?;
        let child = Command::new(palindrome)
            .args(["exec-child", &std::process::id().to_string(), "--"])
            .arg(engine)
            .arg("serve")
            .arg(model)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--threads", "1", "--ctx", "256"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", engine.display()))?;
        let mut server = Self { child, port };
        server.wait_ready(cancelled)?;
        if let Some(mut log) = server.child.stderr.take() {
            // So that it never waits for a reader; it ends with the engine.
            thread::spawn(move || io::copy(&mut log, &mut io::sink()));
        }
        Ok(server)
    }

    /// Where it listens, on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn wait_ready(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), String> {
        let started = Instant::now();
        loop {
            let ended = self.child.try_wait();
            if let Some(status) = ended.map_err(|e| format!("cannot watch the engine: {e}"))? {
                return Err(format!(
                    "the engine ended before it was ready ({}); the end of its log:\n{}",
                    describe(status),
                    self.last_words()
                ));
            }
            let request = Request {
                port: self.port,
                path: "/health",
                body: None,
                timeout: Duration::from_secs(2),
            };
            if send(&request, cancelled).status == Some(200) {
                return Ok(());
            }
            if cancelled() {
                return Err("interrupted".to_owned());
            }
            if started.elapsed() > READY_LIMIT {
                return Err("the engine did not become ready".to_owned());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The end of what it printed; it has ended.
    fn last_words(&mut self) -> String {
        let mut bytes = Vec::new();
        if let Some(mut log) = self.child.stderr.take() {
            // What cannot be read is not shown; the exit status is.
            let _ = log.read_to_end(&mut bytes);
        }
        let start = bytes.len().saturating_sub(TAIL_BYTES);
        String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
    }
}

impl Drop for EngineServer {
    fn drop(&mut self) {
        // It may have ended by itself, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
