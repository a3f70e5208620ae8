//! What the machine was doing: fingerprints, guards, telemetry, the lock.
