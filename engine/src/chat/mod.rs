//! Chat: templates render messages to a prompt; harmony is parsed back out of tokens.

mod clock;
mod harmony;
mod header;
mod messages;
mod python_text;
mod template;

pub use harmony::{Delta, HarmonyParser};
pub use template::{ChatTemplate, RenderInput, TemplateError};
