//! Activations as the kernels take them.

mod batch;
mod block;
mod precision;

pub use batch::{Activations, RUN};
#[cfg(target_arch = "x86_64")]
pub(super) use batch::{Digit, Run};
pub(super) use block::ActBlock;
pub use block::MAX_ACTIVATION;
pub use precision::Precision;
