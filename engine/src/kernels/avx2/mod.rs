//! AVX2 kernels: eight rows in the lanes of a register, integer block sums by `maddubs`, or by
//! AVX-VNNI where a product's `VNNI` says that the machine has it.

mod attention;
mod floats;
mod formats;
mod k_quants;
mod mxcsr;
pub(super) mod peak;
mod place;
mod planes;
mod softmax;
mod tile;

pub(super) use attention::products;
pub(super) use floats::dot_rows;
pub(super) use mxcsr::{mxcsr, set_mxcsr};
pub(super) use planes::{in_planes, room};
pub(super) use softmax::soften;
pub(super) use tile::quantised;
