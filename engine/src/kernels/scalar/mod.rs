//! The portable kernels. What they compute is the definition; every other level must give the
//! same bits.

mod attention;
mod floats;
mod k_quants;
mod mxfp4;
mod q4_0;
mod q4_1;
mod q6_k;
mod q8_0;
mod quantised;

pub(super) use attention::{products, soften};
pub(super) use floats::dot_rows;
#[cfg(target_arch = "x86_64")]
pub(super) use floats::tree;
pub(super) use mxfp4::LEAST_SCALE_BITS;
pub(super) use quantised::quantised;
