//! From a JSON body to a generation: every field is either meant, neutral or refused by name.

mod chat;
mod completion;
mod fields;
mod messages;
mod neutral;
mod options;

pub use chat::{ChatBody, render_prompt};
pub use completion::{CompletionBody, Dialect};
pub use fields::Fields;
pub use options::{Common, random_u64};
