//! Workloads: recorded, imported, checked, and those that this repository brings.

mod bundled;
mod check;
mod import;
mod record;
mod record_command;
mod support;
