//! What a system offers, behind one trait: Linux in full, and what any system shows.

use std::fmt::Debug;
use std::path::PathBuf;

use super::process::ProcessFacts;
use super::{HostFacts, HostSample, Readings};
use crate::server::ProcessUsage;

/// A kind of system. What it does not show is absent in every answer, never 0.
pub trait Machine: Sync + Debug {
    /// What is known of the hardware and the system, without what the caller adds (this program's
    /// version, the checkout, versions of other programs).
    fn describe(&self) -> HostFacts;

    /// What the guards look at.
    fn readings(&self) -> Readings;

    /// A reader of telemetry: some of what it gives is the difference to its last answer.
    fn telemetry(&self) -> Box<dyn Telemetry>;

    /// What the kernel counted for a process so far; all absent when it is gone.
    fn usage(&self, pid: u32) -> ProcessUsage;

    /// Threads, affinity, mapped files and devices of a process.
    fn process(&self, pid: u32) -> ProcessFacts;

    /// Files that a process maps as code, its own program excepted, and stores: copies that a
    /// server makes of its model and reads instead (`NAME.store`).
    fn libraries(&self, pid: u32) -> Vec<PathBuf>;
}

/// A reader of telemetry.
pub trait Telemetry: Send {
    /// Reads the machine. `last`: nothing is read after this, so what is read only now and then is
    /// read now.
    fn sample(&mut self, last: bool) -> HostSample;
}

/// The system that this program runs on.
pub fn machine() -> &'static dyn Machine {
    #[cfg(target_os = "linux")]
    {
        &super::linux::Linux
    }
    #[cfg(not(target_os = "linux"))]
    {
        &super::portable::Portable
    }
}
