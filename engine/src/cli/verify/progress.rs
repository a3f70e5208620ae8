//! Bars.

use indicatif::{ProgressBar, ProgressStyle};

/// Quiet when standard error is no terminal.
pub(super) fn progress(total: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template("{msg:>8} [{bar:30}] {percent}%") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}
