//! What the machine was doing: fingerprints, guards, telemetry, the lock.

mod facts;

pub use facts::{CheckoutFacts, HostFacts, HostSample};
