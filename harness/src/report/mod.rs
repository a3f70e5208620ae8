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
pub(crate) use format::{bare as value_and_label, number, unit_text, with_unit};
pub use terminal::verdict_table;
pub(crate) use terminal::{aligned, in_words};
pub use write::{ReportError, Written, write};
