//! Driving a generation: tokens become visible text, stop strings end it, figures close it.

mod drive;
mod stop;
mod turn;

pub use drive::{Figures, Generation, Outcome, Progress, Step, StopReason};
pub use turn::Turn;
