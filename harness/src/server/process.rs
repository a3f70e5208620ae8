//! A server's life: started in its own process group, seen ready, stopped, seen gone.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::guard::{Guard, MARK, end_marked, new_mark};
use super::hashes::model_files;
use super::launcher::{CommandSpec, LaunchContext, Programs, launcher};
use super::redact::Redaction;
use super::{FileFact, HashCache, LaunchError, LaunchFacts, StopFacts, StopMode, log_tail};
use crate::host::{machine, now_ns};
use crate::replay::{Request, send};
use crate::study::{Arm, ServerLimits};

/// Time between looks at a starting or stopping server.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running server. Dropping it kills its process group.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    port: u16,
    ended: Option<ExitStatus>,
    /// What the server and whatever it starts carry in their environment.
    mark: String,
    /// Ends them should this program be killed; absent where there is no own binary.
    guard: Option<Guard>,
}

/// A free loopback port. Another process may take it before the server does; the server's own
/// error then says so.
pub fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

impl ServerProcess {
    /// Launches an arm's server and waits until it is ready. `log` receives everything that it
    /// prints and lies at `log_path`; model and program are hashed before the clock starts.
    pub fn launch(
        arm: &Arm,
        programs: &Programs,
        limits: &ServerLimits,
        hashes: &mut HashCache,
        (log, log_path): (&File, &Path),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(Self, LaunchFacts), LaunchError> {
        let port = free_port().map_err(|source| LaunchError::Spawn {
            program: "a loopback port".into(),
            source,
        })?;
        let spec = launcher(arm.kind).command(&LaunchContext {
            arm,
            port,
            programs,
        })?;
        let binary = hashes.fact(&spec.binary)?;
        let models = arm
            .model
            .iter()
            .flat_map(|m| model_files(m))
            .map(|m| hashes.fact(&m))
            .collect::<Result<Vec<FileFact>, _>>()?;
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let launched_ns = now_ns();
        let mut server = Self::spawn(arm, &spec, programs, port, log, &cwd)?;
        let ready_ns = server.wait_ready(arm, &spec, limits, log_path, cancelled)?;
        let pid = server.child.id();
        let mut libraries = Vec::new();
        for library in machine().libraries(pid) {
            libraries.push(hashes.fact(&library)?);
        }
        let facts = LaunchFacts {
            schema: "1.0".to_owned(),
            arm: arm.name.clone(),
            label: arm.label.clone(),
            kind: arm.kind,
            command: std::iter::once(spec.program.display().to_string())
                .chain(spec.args.iter().cloned())
                .collect(),
            env: arm.env.clone(),
            cwd: cwd.display().to_string(),
            port,
            pid,
            binary,
            libraries,
            models,
            build: of_build(spec.build, arm),
            launched_ns,
            ready_ns,
        };
        Ok((server, Redaction::of(&arm.env).launch(facts)))
    }

    fn spawn(
        arm: &Arm,
        spec: &CommandSpec,
        programs: &Programs,
        port: u16,
        log: &File,
        cwd: &Path,
    ) -> Result<Self, LaunchError> {
        let failed = |source| LaunchError::Spawn {
            program: spec.program.clone(),
            source,
        };
        let mark = new_mark();
        let own = programs.palindrome.as_deref();
        let mut guard = own
            .map(|own| Guard::start(own, &mark))
            .transpose()
            .map_err(failed)?;
        // Through our own binary, which asks the kernel to end the server should we be killed, and
        // then becomes it: same process id, same group.
        let mut command = match &programs.palindrome {
            Some(own) => {
                let mut command = Command::new(own);
                command
                    .args(["exec-child", &std::process::id().to_string(), "--"])
                    .arg(&spec.program);
                command
            }
            None => Command::new(&spec.program),
        };
        let child = command
            .args(&spec.args)
            .envs(&arm.env)
            .env(MARK, &mark)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log.try_clone().map_err(failed)?)
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let mut server = Self {
            child,
            port,
            ended: None,
            mark,
            guard: None,
        };
        if let Some(guard) = &mut guard {
            guard.watch(server.pid()).map_err(failed)?;
        }
        server.guard = guard;
        Ok(server)
    }

    fn wait_ready(
        &mut self,
        arm: &Arm,
        spec: &CommandSpec,
        limits: &ServerLimits,
        log_path: &Path,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<u64, LaunchError> {
        let started = Instant::now();
        let limit = Duration::from_secs_f64(limits.ready_timeout_s);
        let tail = || {
            let log = std::fs::read(log_path).unwrap_or_default();
            let shown = Redaction::of(&arm.env).bytes(&log);
            log_tail(&shown.unwrap_or(log))
        };
        let mut last = "no answer yet".to_owned();
        loop {
            if let Some(status) = self.exited() {
                return Err(LaunchError::Died {
                    arm: arm.name.clone(),
                    how: describe(status),
                    log_tail: tail(),
                });
            }
            if cancelled() {
                return Err(LaunchError::Cancelled {
                    arm: arm.name.clone(),
                });
            }
            let request = Request {
                port: self.port,
                path: &spec.health,
                body: None,
                timeout: Duration::from_secs(2),
            };
            let answer = send(&request, cancelled);
            let ready_ns = now_ns();
            match (answer.status, answer.error) {
                (Some(200), None) if self.exited().is_none() => return Ok(ready_ns),
                (Some(status), _) => last = format!("{} answered {status}", spec.health),
                (None, Some(error)) => last = error,
                (None, None) => {}
            }
            if started.elapsed() >= limit {
                return Err(LaunchError::NotReady {
                    arm: arm.name.clone(),
                    waited_s: started.elapsed().as_secs_f64(),
                    last,
                    log_tail: tail(),
                });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            // An error here means that the child was already waited for, which only this type does.
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Stops it: SIGTERM to its group, SIGKILL after `grace`; returns once it is gone.
    pub fn stop(mut self, grace: Duration) -> StopFacts {
        let usage = machine().usage(self.child.id());
        let mode = if self.exited().is_some() {
            StopMode::Died
        } else {
            self.signal(Signal::TERM);
            if self.wait_exit(grace) {
                StopMode::Terminated
            } else {
                StopMode::Killed
            }
        };
        // The leader may leave children behind, or not leave at all.
        self.signal(Signal::KILL);
        end_marked(&self.mark);
        let status = self.exited().or_else(|| self.child.wait().ok());
        self.ended = status;
        drop(self.guard.take());
        StopFacts {
            mode,
            exit_code: status.and_then(|s| s.code()),
            signal: status.and_then(|s| s.signal()),
            port_free: self.port_becomes_free(),
            usage,
        }
    }

    fn wait_exit(&mut self, limit: Duration) -> bool {
        let started = Instant::now();
        while self.exited().is_none() {
            if started.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        true
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // Fails only when nobody is left in the group, which is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }

    fn port_becomes_free(&self) -> bool {
        let started = Instant::now();
        loop {
            if TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return true;
            }
            if started.elapsed() > Duration::from_secs(2) {
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.signal(Signal::KILL);
            end_marked(&self.mark);
            // Reaps it; nothing to do about a failure while dropping.
            let _ = self.child.wait();
        }
    }
}

/// An exit status in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown end".to_owned(),
    }
}

/// What an adapter knows of a build, and what a build made for the study left.
fn of_build(mut build: BTreeMap<String, String>, arm: &Arm) -> BTreeMap<String, String> {
    if let Some(built) = &arm.built {
        build.extend(built.facts.clone());
    }
    build
}
