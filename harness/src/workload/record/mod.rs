//! A recording reverse proxy: passes requests on unchanged, and keeps the bodies of those that ask
//! for an answer.

mod exchange;
mod framing;
mod head;
mod keeper;
mod proxy;
mod upstream;

pub use keeper::Kept;
pub use proxy::{Recorder, Stopped};
pub use upstream::Upstream;
