//! Linux: `/proc` and `/sys`.

mod describe;
mod energy;
mod inspect;
mod machine;
mod proc;
mod processes;
mod servers;
mod telemetry;
mod throttle;
mod usage;

pub use machine::Linux;
