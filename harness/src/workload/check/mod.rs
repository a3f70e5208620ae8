//! What a workload asks of servers, and what in it would make a comparison unfair.

mod body;
mod engine;
mod fields;
mod gather;
mod judge;
mod table;
mod tokens;

pub use body::{BodyFacts, Route};
pub use engine::EngineServer;
pub use gather::{GatherError, Gathered, gather};
pub use judge::{Checked, Finding, Weight, judge};
pub use table::table;
pub use tokens::{Counted, Counter, Counts};
