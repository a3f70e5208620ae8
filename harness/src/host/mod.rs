//! What the machine was doing: fingerprints, guards, telemetry, the lock.

mod clock;
mod facts;
mod fingerprint;
mod guard;
mod lock;
mod proc;
mod record;
mod sampler;

pub use clock::now_ns;
pub use facts::{CheckoutFacts, HostFacts, HostSample};
pub use guard::{GuardError, Readings, violations, wait_until_fit};
pub use lock::{LockError, RunLock, default_lock_path};
pub use record::{AaRecord, HostRecord, SpreadOf};
pub use sampler::{SAMPLE_EVERY, Sampler};
