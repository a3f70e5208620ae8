//! NEON kernels for 64-bit Arm with the dot-product extension: four rows in the lanes of a
//! register.

mod attention;
mod floats;
mod formats;
mod fpcr;
mod instructions;
mod k_quants;
pub(super) mod peak;
mod place;
mod quad;
mod softmax;
mod tile;

pub(super) use attention::products;
pub(super) use floats::dot_rows;
pub(super) use fpcr::{fpcr, set_fpcr};
pub(super) use quad::Quad;
pub(super) use softmax::soften;
pub(super) use tile::quantised;
