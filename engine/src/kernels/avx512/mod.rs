//! AVX-512 kernels: the AVX2 ones with sixteen rows in the lanes and block sums by VNNI's
//! `vpdpbusd`.

mod floats;
mod formats;
mod k_quants;
pub(super) mod peak;
mod place;
mod tile;

pub(super) use floats::dot_rows;
pub(super) use tile::quantised;
