//! What this machine can do at most: memory, arithmetic, disk. Rates are read off the clock here,
//! so that a share of a limit has both of its parts from the same machine.

mod compute;
mod disk;
mod error;
mod figure;
mod host;
mod memory;
mod passes;
mod plan;
mod report;

pub use disk::{DEPTHS, DiskFile};
pub use error::ProbeError;
pub use figure::{Figure, Quantity};
pub use host::{Host, Load, LoadMeter};
pub use plan::{Ceilings, Plan, probe};
pub use report::{FORMAT, Report, VERSION};
