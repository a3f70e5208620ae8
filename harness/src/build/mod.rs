//! Building arms from source: a revision in a worktree of its own, or the repository as it lies.

mod arms;
mod error;
mod git;
mod lock;
mod make;
mod site;

pub use arms::{BuildRecord, Workshop, build_arms, sites};
pub use error::{BuildError, FailedBuild};
pub use site::Site;
