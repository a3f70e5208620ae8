//! The expert store: a model file whose quantised matrices lie in tiles.
//!
//! A store holds its source byte for byte, every part of a split one, except that each tensor
//! with whole tiles of rows is packed (`formats::tiles`). Lengths and offsets stay those of the
//! source, so a store is a page or two longer than it, opens by mapping alone, and can be turned back
//! into it bit for bit.
//!
//! ```text
//! prelude      magic, version, length, JSON; zeros up to a multiple of 4096
//! part 1       the source's first file, packed; zeros up to a multiple of 4096
//! part 2 ...
//! ```

mod error;
mod open;
mod pack;
mod prelude;
mod unpack;

pub use error::StoreError;
pub use open::{open, open_model};
pub use pack::{Packed, Packing, pack, pack_as};
pub use prelude::{Prelude, SourcePart, is_store, read_prelude};
pub use unpack::{rebuild, verify};

/// Parts begin at multiples of this.
const PAGE: u64 = 4096;
