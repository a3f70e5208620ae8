//! The routes.

mod dispatch;
mod facts;
mod text;

pub use dispatch::router;
