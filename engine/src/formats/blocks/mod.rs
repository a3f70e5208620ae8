//! Block formats: how a run of weights is laid out in bytes. One file a format.

mod check;
mod floats;
mod k_scales;
mod mxfp4;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_k;
mod q6_k;
mod q8_0;
mod ty;

pub use check::{MAX_E8M0, ValueFault, first_fault};
pub use k_scales::KPart;
pub use mxfp4::{MXFP4_DOUBLED, e8m0_half};
pub use q4_k::q4_k_part;
pub use q5_k::q5_k_part;
pub use q6_k::{Q6Part, q6_k_part};
pub use ty::{GgmlType, SUPPORTED_TYPES, ggml_type_name};
