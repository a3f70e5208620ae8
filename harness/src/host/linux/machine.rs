//! The trait, from the readers beside it.

use std::path::PathBuf;

use super::describe::describe;
use super::inspect::inspect;
use super::proc::{load1, meminfo, pressure_some10};
use super::servers::running_servers;
use super::telemetry::LinuxTelemetry;
use super::usage::{mapped_files, usage};
use crate::host::machine::{Machine, Telemetry};
use crate::host::process::ProcessFacts;
use crate::host::{HostFacts, Readings, logical_cpus};
use crate::server::ProcessUsage;

/// This kind of system.
#[derive(Debug)]
pub struct Linux;

impl Machine for Linux {
    fn describe(&self) -> HostFacts {
        describe()
    }

    fn readings(&self) -> Readings {
        Readings {
            available_bytes: meminfo().get("MemAvailable").copied(),
            load1: load1(),
            logical_cpus: logical_cpus(),
            psi_cpu_some10: pressure_some10("cpu"),
            psi_memory_some10: pressure_some10("memory"),
            servers: running_servers(),
        }
    }

    fn telemetry(&self) -> Box<dyn Telemetry> {
        Box::new(LinuxTelemetry::default())
    }

    fn usage(&self, pid: u32) -> ProcessUsage {
        usage(pid)
    }

    fn process(&self, pid: u32) -> ProcessFacts {
        inspect(pid)
    }

    fn libraries(&self, pid: u32) -> Vec<PathBuf> {
        mapped_files(pid)
    }
}
