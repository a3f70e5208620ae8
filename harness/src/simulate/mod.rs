//! Simulated studies, judged by the code that judges real ones: how often it errs, and what it sees.

mod calibrate;
mod design;
mod noise;
mod one;
mod random;

pub use calibrate::{Cell, Rate, Setup, cell, lines};
pub use design::Design;
pub use noise::Noise;
pub use one::{Judged, judged};
pub use random::Random;
