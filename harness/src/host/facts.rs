//! What `host.json` and `host.jsonl` hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The checkout that the harness runs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutFacts {
    /// Commit id.
    pub commit: String,
    /// Whether tracked files differ from it, or untracked ones lie beside them.
    pub dirty: bool,
}

/// The machine, as `host.json` describes it. Absent means that the machine does not show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `major.minor`.
    pub schema: String,
    /// UTC when the study started, `YYYY-MM-DDTHH:MM:SSZ`.
    pub utc: String,
    /// Boot id: two archives with the same one share a boot.
    pub boot_id: Option<String>,
    /// Operating system's own name.
    pub os: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// `x86_64`, `aarch64` ...
    pub arch: String,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Instruction-set flags, sorted.
    pub cpu_flags: Vec<String>,
    /// Logical CPUs that this process may run on.
    pub logical_cpus: Option<u32>,
    /// Physical cores.
    pub physical_cores: Option<u32>,
    /// Installed memory.
    pub memory_bytes: Option<u64>,
    /// Swap configured.
    pub swap_bytes: Option<u64>,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Kernel's clock source.
    pub clocksource: Option<String>,
    /// Transparent huge pages, as the kernel prints the setting.
    pub transparent_hugepage: Option<String>,
    /// Whether a hypervisor runs below.
    pub virtualised: Option<bool>,
    /// This program's version.
    pub harness_version: String,
    /// Git state of the working folder.
    pub checkout: Option<CheckoutFacts>,
    /// Versions of other programs, by name.
    pub versions: BTreeMap<String, String>,
}

impl HostFacts {
    /// What makes two descriptions those of one machine: an update or a reboot changes none of it.
    pub fn machine(&self) -> [(&'static str, String); 4] {
        let count = |n: Option<u32>| n.map_or_else(|| "not shown".to_owned(), |n| n.to_string());
        [
            ("arch", self.arch.clone()),
            (
                "cpu_model",
                self.cpu_model.clone().unwrap_or("not shown".into()),
            ),
            ("logical_cpus", count(self.logical_cpus)),
            ("physical_cores", count(self.physical_cores)),
        ]
    }
}

/// One line of telemetry, taken about every 250 ms while a session runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Monotonic.
    pub ns: u64,
    /// Share of CPU time not idle since the sample before, 0 to 1, over all CPUs.
    pub cpu_busy: Option<f64>,
    /// One-minute load average.
    pub load1: Option<f64>,
    /// PSI `some avg10` of the CPU, percent.
    pub psi_cpu_some10: Option<f64>,
    /// PSI `some avg10` of memory, percent.
    pub psi_memory_some10: Option<f64>,
    /// PSI `some avg10` of I/O, percent.
    pub psi_io_some10: Option<f64>,
    /// `MemAvailable`.
    pub available_bytes: Option<u64>,
    /// Page cache.
    pub cached_bytes: Option<u64>,
    /// Page faults of the machine since boot.
    pub faults: Option<u64>,
    /// Page faults of the machine since boot that read the disk.
    pub major_faults: Option<u64>,
    /// Bytes read from disks since boot.
    pub disk_read_bytes: Option<u64>,
    /// Frequency of the first CPU.
    pub cpu_mhz: Option<f64>,
    /// Hottest thermal zone.
    pub celsius: Option<f64>,
    /// Share of CPU time that the hypervisor gave to others since the sample before, 0 to 1.
    pub cpu_steal: Option<f64>,
    /// Bytes read back from swap since boot.
    pub swap_in_bytes: Option<u64>,
    /// Bytes written to swap since boot.
    pub swap_out_bytes: Option<u64>,
    /// Thermal throttling events of all CPUs since boot; read about once a second.
    pub thermal_throttles: Option<u64>,
    /// Time that a CPU limit on this program's group (the servers' too) held it back, in all.
    pub cgroup_throttled_ns: Option<u64>,
    /// Energy counters; absent in the file where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Vec<EnergyCounter>>,
    /// Power of devices that count no energy; absent in the file where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Vec<PowerReading>>,
    /// What other processes used, about once a second; absent in the other samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherProcesses>,
}

/// A counter of energy as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyCounter {
    /// `package-0`, `dram-0`, `psys`, or a GPU's driver and place.
    pub device: String,
    /// Energy so far.
    pub microjoules: u64,
    /// Where it starts again from 0; absent where it does not, or does not say.
    pub range_microjoules: Option<u64>,
}

/// Power at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerReading {
    /// As of [`EnergyCounter`].
    pub device: String,
    /// Power, or its driver's own short average.
    pub microwatts: u64,
}

/// CPU time of processes that are neither this program nor its servers. One that began and ended
/// between two looks is not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcesses {
    /// When it was looked before; monotonic.
    pub since_ns: u64,
    /// CPU time of all of them since.
    pub cpu_ms: u64,
    /// Those that used the most, at most three.
    pub most: Vec<OtherProcess>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Process id.
    pub pid: u32,
    /// Its program's name, as the kernel has it.
    pub name: String,
    /// CPU time since the last look.
    pub cpu_ms: u64,
}
