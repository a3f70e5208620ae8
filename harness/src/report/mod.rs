//! What people read: HTML, Markdown, charts.
