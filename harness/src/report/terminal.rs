//! The verdict as a table for a terminal: plain text, no colour.

use super::format::{bare, range};
use crate::derive::{Figures, Metric};

/// Arms by metric, the ratio over the first arm and its interval; a label letter after each value,
/// then the verdict's sentence and warnings. Ends with a newline.
pub fn verdict_table(figures: &Figures) -> String {
    let mut out = String::new();
    let warnings = &figures.verdict().warnings;
    for warning in warnings {
        out.push_str("! ");
        out.push_str(warning);
        out.push('\n');
    }
    if !warnings.is_empty() {
        out.push('\n');
    }
    out.push_str(&aligned(&rows(figures)));
    out.push_str("M measured, C calculated from measured figures; a ratio is the mean over neighbouring sessions, adjusted for drift, of the median request's ratio\n\n");
    out.push_str(&figures.verdict().sentence);
    out.push('\n');
    out
}

fn rows(figures: &Figures) -> Vec<Vec<String>> {
    let arms = figures.arms();
    let mut head = vec![String::new()];
    head.extend(arms.iter().cloned());
    if let Some((base, others)) = arms.split_first() {
        for other in others {
            head.push(format!("{other} / {base}"));
            head.push("95% interval".into());
        }
    }
    let mut rows = vec![head];
    for metric in Metric::ALL {
        let mut row = vec![metric_title(metric).to_string()];
        for arm in arms {
            row.push(bare(figures.get(&format!("arm/{arm}/{}", metric.key()))));
        }
        for other in arms.iter().skip(1) {
            let found = figures
                .comparisons()
                .iter()
                .find(|c| c.metric == metric && c.other == *other);
            row.push(found.map_or_else(String::new, |c| {
                bare(figures.get(&format!("{}/ratio", c.prefix)))
            }));
            row.push(found.map_or_else(String::new, |c| match c.no_interval {
                Some(_) => "none".into(),
                None => range(figures, &c.prefix),
            }));
        }
        rows.push(row);
    }
    rows
}

/// A metric with its unit and, where it is one, "median".
pub(super) fn metric_title(metric: Metric) -> &'static str {
    match metric {
        Metric::DecodeRate => "Decode, tok/s",
        Metric::PromptRate => "Prompt, tok/s",
        Metric::Ttft => "Time to first token, median s",
        Metric::ClientWall => "Client wall, median s",
    }
}

/// Columns padded to their widest cell; the first to the left, the rest to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        rows.iter()
            .filter_map(|r| r.get(c))
            .map(|s| s.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c].saturating_sub(cell.chars().count()));
            let parts = if c == 0 {
                [cell.as_str(), &pad, ""]
            } else {
                ["   ", &pad, cell]
            };
            line.push_str(&parts.concat());
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
