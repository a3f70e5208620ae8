//! Study files and the plans they expand to.

mod plan;

pub use plan::{Plan, PlannedSession, Role};
