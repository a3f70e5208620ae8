//! Proof of exactness: a model walked along one way and along others must give the same logits,
//! bit for bit.

mod chain;
mod compare;
mod difference;
mod prompt;
#[cfg(test)]
mod tests;
mod walk;
mod way;

pub use chain::{Chain, Link};
pub use compare::{Comparison, Estimate, Event, Plan, Row, VerifyError, compare};
pub use difference::{At, Difference};
pub use prompt::prompt;
pub use walk::{Walk, walk};
pub use way::{Arrangement, Layouts, NamedWay, Prefix, Way, WayError, parse_ways};
