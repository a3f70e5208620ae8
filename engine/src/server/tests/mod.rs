//! The whole HTTP surface over a scripted backend.

mod answers;
mod errors;
mod fake;
#[path = "../../../tests/support/http.rs"]
mod http;
mod lifecycle;
mod redact;
mod streams;
