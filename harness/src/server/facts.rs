//! What `launch.json` says of a server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ServerKind;

/// A file by content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFact {
    /// As it was opened.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
}

/// How a server was started and what exactly was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFacts {
    /// `major.minor`.
    pub schema: String,
    /// Arm name.
    pub arm: String,
    /// Arm's label for people.
    pub label: String,
    /// Which adapter launched it.
    pub kind: ServerKind,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment given beyond the inherited one; secrets redacted by name.
    pub env: BTreeMap<String, String>,
    /// Working folder.
    pub cwd: String,
    /// Loopback port.
    pub port: u16,
    /// Process id, which is its group's id too.
    pub pid: u32,
    /// The program.
    pub binary: FileFact,
    /// Shared libraries mapped once ready, and a store that is read in the model's place.
    pub libraries: Vec<FileFact>,
    /// Model files.
    pub models: Vec<FileFact>,
    /// What is known of the build: `version`, `build` (`wheel`, `native`, `path`), `features` ...
    pub build: BTreeMap<String, String>,
    /// Just before the process was started; monotonic.
    pub launched_ns: u64,
    /// When the health route first said ready; monotonic.
    pub ready_ns: u64,
}

/// What the kernel counted for a server's process, read before it is stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Peak resident set (`VmHWM`).
    pub peak_rss_bytes: Option<u64>,
    /// Page faults served without the disk.
    pub minor_faults: Option<u64>,
    /// Page faults that read the disk.
    pub major_faults: Option<u64>,
    /// CPU time in user mode.
    pub user_ms: Option<u64>,
    /// CPU time in the kernel.
    pub system_ms: Option<u64>,
    /// Bytes that storage had to fetch for it (`read_bytes`).
    pub read_bytes: Option<u64>,
}

/// How a process went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopMode {
    /// It left after SIGTERM, within the grace period.
    Terminated,
    /// It had to be killed.
    Killed,
    /// It was gone before it was asked.
    Died,
}

/// The end of a server's life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopFacts {
    /// How it went.
    pub mode: StopMode,
    /// Exit code, if it exited.
    pub exit_code: Option<i32>,
    /// Signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Whether the port could be bound again afterwards.
    pub port_free: bool,
    /// Counted before the stop.
    pub usage: ProcessUsage,
}
