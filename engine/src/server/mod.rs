//! The HTTP surface: OpenAI's routes and llama-server's (`docs/api.md` for users).
//!
//! A request goes `listen` -> `routes` -> `request` (validate, tokenize) -> `generation` (drive
//! the backend) -> `reply` (one writer a shape) -> `respond` (whole, or as a stream of events).

mod auth;
mod backend;
mod body;
mod error;
mod generation;
mod listen;
mod reply;
mod request;
mod respond;
mod routes;
mod state;
#[cfg(test)]
mod tests;

pub use auth::ApiKeys;
pub use backend::{Backend, EventSource, Runtime};
pub use error::ApiError;
pub use listen::{ServeError, ServeOptions, serve};
pub use state::{App, AppOptions};
