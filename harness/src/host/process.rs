//! What a machine shows of a running process: what it really does, whatever it was asked.

use serde::{Deserialize, Serialize};

/// A process, looked at once. Absent means that the machine does not show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// When it was looked at; monotonic.
    pub taken_ns: u64,
    /// Its threads, by name and by the CPUs that they may run on.
    pub threads: Option<Vec<ThreadGroup>>,
    /// CPUs that its first thread may run on, as `0-3,8`.
    pub cpus_allowed: Option<String>,
    /// Scheduling priority of its first thread; 0 is usual, more is less.
    pub nice: Option<i32>,
    /// Large files in its memory (1 MiB or more of each), in the order of their paths.
    pub mapped: Option<Vec<MappedFile>>,
    /// Device files that it has open, terminals and the like left out.
    pub devices: Option<Vec<String>>,
    /// Libraries in its memory that drive a GPU or another accelerator.
    pub device_libraries: Option<Vec<String>>,
    /// Memory on devices, as their drivers count it for this process; absent where none does.
    pub device_memory: Option<Vec<DeviceMemory>>,
}

/// Threads that have a name and CPUs in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadGroup {
    /// Their name.
    pub name: String,
    /// CPUs that they may run on.
    pub cpus_allowed: String,
    /// How many there are.
    pub count: u32,
}

/// A file in a process's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedFile {
    /// As it was opened.
    pub path: String,
    /// Bytes of it that are mapped, read or not.
    pub bytes: u64,
}

/// Memory on a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceMemory {
    /// The driver's name and the device's place, as `amdgpu 0000:03:00.0`.
    pub device: String,
    /// Which memory, as the driver names it (`vram0`, `gtt`).
    pub region: String,
    /// How much.
    pub bytes: u64,
}
