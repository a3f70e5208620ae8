//! Archives as things that are kept: listed, looked at, compared, packed, indexed, described.

mod diff;
mod index;
mod list;
mod pack;
mod ro_crate;
mod show;

pub use diff::{ArchiveDiff, Difference, Section, diff};
pub use index::{Finding, Index, IndexEntry, IndexError, add, check, withdraw};
pub use list::{Listed, State, list};
pub use pack::{PackError, pack, unpack};
pub use ro_crate::ro_crate;
pub use show::{Shown, show};
