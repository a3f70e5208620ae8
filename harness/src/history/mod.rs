//! One metric over many archives, in time order.

mod chain;
mod conditions;
mod line;

pub use chain::{Link, chain};
pub use conditions::Conditions;
pub use line::{Line, Skipped, lines};
