//! Prompt and decode rates at given lengths, and their shares of the machine's limits.

mod cost;
mod error;
mod output;
mod rates;
mod row;
mod run;
mod test;

pub use cost::Cost;
pub use error::BenchError;
pub use output::{Format, render};
pub use rates::Rates;
pub use row::{Limits, Row};
pub use run::{Settings, run};
pub use test::{Test, Work};
