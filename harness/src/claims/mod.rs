//! Published numbers in texts: written from an archive, and held to it ever after.

mod block;
mod check;
mod number;
mod sentence;

pub use block::{Block, BlockError, Wanted, blocks};
pub use check::{Checked, Finding, Kept, check};
pub use number::{Scale, Shown, shown};
pub use sentence::{Claim, claims};
