//! Dot products: each kernel has a scalar twin that defines its meaning.
//!
//! Every output element is one row's accumulator: blocks join it in k order, whatever the
//! instruction set, the number of tokens or the strip of rows, so its bits depend on the row
//! and the token alone.

mod activations;
#[cfg(any(target_arch = "x86_64", test))]
mod array;
mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod by_format;
mod elementary;
#[cfg(test)]
pub(crate) mod fault;
mod fp_env;
#[cfg(test)]
mod golden_tests;
mod isa;
mod lanes;
mod matmul;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod peak;
mod planes;
mod scalar;
mod softmax;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(test)]
mod tests;

pub use activations::{ActBlock, Activations, MAX_ACTIVATION, Precision, RUN};
pub use attention::{Panels, Product, products, soften};
pub use elementary::{exp, sigmoid};
pub use fp_env::FpEnv;
pub use isa::Isa;
pub use lanes::{LANES, Lanes};
pub use matmul::{Layout, Matrix, matmul};
pub use planes::{Slack, upper_bounds};
pub use softmax::{KEY_BLOCK, Tally};
