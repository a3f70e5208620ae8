//! Activations as the kernels take them.

mod batch;
mod block;
mod precision;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use batch::Run;
pub use batch::{Activations, RUN};
pub use block::{ActBlock, MAX_ACTIVATION};
pub use precision::Precision;
