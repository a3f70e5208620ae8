//! The steps of a forward pass. Each output element has one owner and one order of operations,
//! so its bits do not depend on threads, block sizes or company (EXACTNESS.md).

mod activation;
mod attention;
mod finite;
mod linear;
mod moe;
mod norm;
mod quantize;
mod reduce;
mod rope;
mod router;
mod screen;

pub use crate::kernels::{exp, sigmoid};
pub use activation::{clamped_swiglu, swiglu};
pub use attention::{AttentionShape, Place, attention};
pub use finite::{NonFinite, check_computed, check_finite};
pub use linear::{Linear, Precisions, Tools, add_bias, add_to, embed, linear};
pub use moe::{ExpertActivation, Experts, MoeBuffers, moe};
pub use norm::rms_norm;
pub use quantize::quantize;
pub use reduce::{dot, sum, sum_of_squares};
pub use rope::{Pairs, RopeScaling, RopeTable, Rotation, YarnRamp};
pub use router::{Choice, route};
pub use screen::{Kept, best_rows};
