//! Dot products: each kernel has a scalar twin that defines its meaning (EXACTNESS.md).

mod activations;
mod isa;
mod matmul;

pub use activations::{Activations, Precision};
pub use isa::Isa;
pub use matmul::{Matrix, matmul};
