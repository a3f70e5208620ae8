//! What people read: HTML, Markdown, charts, the terminal's table. Formats figures, computes none.

mod chart;
mod content;
mod detail;
mod format;
mod html;
mod markdown;
mod page;
mod settings;
mod terminal;
mod usage;
mod write;

pub use chart::sessions_svg;
pub use terminal::verdict_table;
pub use write::{ReportError, Written, write};
