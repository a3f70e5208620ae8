//! AVX-512 kernels: the AVX2 ones with sixteen rows in the lanes and block sums by VNNI's
//! `vpdpbusd`.

mod attention;
mod floats;
mod formats;
mod k_quants;
pub(super) mod peak;
mod place;
mod softmax;
mod tile;

pub(super) use attention::products;
pub(super) use floats::dot_rows;
pub(super) use softmax::soften;
pub(super) use tile::quantised;
