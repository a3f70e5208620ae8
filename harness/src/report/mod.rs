//! What people read: HTML, Markdown, charts, the terminal's table. Formats figures, computes none.

mod format;
mod terminal;

pub use terminal::verdict_table;
