//! Importers: public formats of requests and conversations become folders of bodies with every
//! sampling field spelled out.

mod conversation;
mod items;
mod mooncake;
mod plan;
mod sharegpt;
mod transcript;
mod words;
mod write;

pub use plan::{Choice, Format, Imported, Options, Turns};
pub use write::import;
