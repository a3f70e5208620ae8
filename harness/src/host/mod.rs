//! What the machine was doing: fingerprints, guards, telemetry, the lock.

mod clock;
mod facts;
mod fingerprint;
mod guard;
#[cfg(target_os = "linux")]
mod linux;
mod lock;
mod machine;
mod portable;
mod process;
mod record;
mod sampler;
mod shown;

pub use clock::{now_ns, thread_cpu_ns};
pub use facts::{
    CheckoutFacts, EnergyCounter, HostFacts, HostSample, OtherProcess, OtherProcesses, PowerReading,
};
use fingerprint::logical_cpus;
pub use guard::{GuardError, Readings, violations, wait_until_fit};
pub use lock::{LockError, RunLock, default_lock_path};
pub use machine::{Machine, Telemetry, machine};
pub use portable::Portable;
pub use process::{DeviceMemory, MappedFile, ProcessFacts, ThreadGroup};
pub use record::{AaRecord, HostRecord, SpreadOf};
pub use sampler::{SAMPLE_EVERY, Sampler};
pub use shown::telemetry_not_shown;
