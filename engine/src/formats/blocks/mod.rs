//! Block formats: how a run of weights is laid out in bytes. One file a format.

mod check;
mod floats;
mod mxfp4;
mod q4_0;
mod q4_1;
mod q8_0;
mod ty;

pub use check::{MAX_E8M0, ValueFault, first_fault};
pub use mxfp4::{MXFP4_DOUBLED, e8m0_half};
pub use ty::{GgmlType, SUPPORTED_TYPES, ggml_type_name};
