//! From published figures to a verdict on what a study demands. Compares; computes no figure.

mod github;
mod json;
mod judge;
mod junit;
mod text;

pub use github::{annotations, failed, summary};
pub use json::json;
pub use judge::{Judged, Judgement, Outcome, judge};
pub use junit::junit;
pub use text::{Place, explain};
