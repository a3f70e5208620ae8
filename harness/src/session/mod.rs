//! A study under way: launch, ready, replay, stop, in the plan's order.

mod builds;
mod cancel;
mod console;
mod end;
mod error;
mod live;
mod one;
mod progress;
mod replay;
mod run;

pub use cancel::Cancel;
pub use console::Console;
pub use end::SessionEnd;
pub use error::RunError;
pub(crate) use live::{decoded, first_token_s};
pub use progress::{All, Progress, Silent};
pub use run::{RunOptions, run};
