//! A study under way: launch, ready, replay, stop, in the plan's order.

mod cancel;
mod end;
mod error;
mod one;
mod progress;
mod replay;
mod run;

pub use cancel::Cancel;
pub use end::SessionEnd;
pub use error::RunError;
pub use progress::{Console, Progress, Silent};
pub use run::{RunOptions, run};
