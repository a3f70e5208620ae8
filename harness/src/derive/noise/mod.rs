//! What else happened on the machine while sessions were measured, named next to the session.

mod detect;
mod limits;
mod sources;
mod window;
mod words;

pub(super) use detect::noise;
pub use limits::{Limits, NOISE_RULES};
pub use sources::{Noise, NoiseKind};
pub(super) use window::Window;
pub(super) use words::warning;
