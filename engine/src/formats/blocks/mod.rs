//! Block formats: how a run of weights is laid out in bytes.

mod ty;

pub use ty::GgmlType;
