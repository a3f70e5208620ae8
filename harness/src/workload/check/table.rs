//! A checked workload for people.

use std::fmt::Write as _;

use super::body::Route;
use super::judge::{Checked, Weight};
use super::tokens::Counted;

/// Most bodies that a finding names.
const NAMED: usize = 3;

/// The bodies as a table, then what was found, then the outcome in a line.
pub fn table(checked: &Checked, counted_by: &str) -> String {
    let mut rows = vec![
        [
            "body",
            "bytes",
            "turns",
            "prompt tokens",
            "answer at most",
            "stream",
            "redacted",
        ]
        .map(str::to_owned),
    ];
    let dash = || "-".to_owned();
    let mut total = (0, 0, 0);
    let mut assumed = false;
    for (body, counts) in &checked.bodies {
        total.0 += body.bytes;
        total.1 += counts.tokens;
        total.2 += body.max_tokens.unwrap_or(0);
        assumed |= counts.label == Counted::Assumed;
        let turns = match body.route {
            Some(Route::Chat) => body.turns.to_string(),
            Some(Route::Text) => "text".to_owned(),
            None => dash(),
        };
        rows.push([
            body.name.clone(),
            body.bytes.to_string(),
            turns,
            with_label(counts.tokens, counts.label),
            body.max_tokens.map_or_else(dash, |n| n.to_string()),
            body.stream
                .map_or_else(dash, |on| if on { "yes" } else { "no" }.to_owned()),
            if body.redacted.is_empty() {
                dash()
            } else {
                body.redacted.len().to_string()
            },
        ]);
    }
    if checked.bodies.len() > 1 {
        let label = if assumed {
            Counted::Assumed
        } else {
            Counted::Measured
        };
        rows.push([
            format!("{} bodies", checked.bodies.len()),
            total.0.to_string(),
            dash(),
            with_label(total.1, label),
            total.2.to_string(),
            dash(),
            dash(),
        ]);
    }
    let mut out = aligned(&rows);
    let _ = writeln!(out, "prompt tokens: {counted_by}");
    if assumed {
        out.push_str("A: ASSUMED, 4 bytes of text a token, without a template's own; --server or --model counts them\n");
    }
    out.push('\n');
    for finding in &checked.findings {
        let mark = match finding.weight {
            Weight::Unfair => "UNFAIR",
            Weight::Note => "note  ",
        };
        let _ = writeln!(
            out,
            "{mark} {}{}",
            finding.what,
            of(&finding.bodies, checked.bodies.len())
        );
    }
    let unfair = checked
        .findings
        .iter()
        .filter(|f| f.weight == Weight::Unfair)
        .count();
    if unfair == 0 {
        out.push_str("fair: every server is asked the same\n");
    } else {
        let _ = writeln!(
            out,
            "unfair: {unfair} finding(s) above would make servers answer differently"
        );
    }
    out
}

fn with_label(tokens: u64, label: Counted) -> String {
    match label {
        Counted::Measured => format!("{tokens} M"),
        Counted::Assumed => format!("{tokens} A"),
    }
}

/// Which bodies, in few words.
fn of(bodies: &[String], all: usize) -> String {
    match bodies {
        [] => String::new(),
        _ if bodies.len() == all && all > NAMED => " (all bodies)".to_owned(),
        _ if bodies.len() > NAMED => format!(
            " ({} and {} more)",
            bodies[..NAMED].join(", "),
            bodies.len() - NAMED
        ),
        _ => format!(" ({})", bodies.join(", ")),
    }
}

/// Rows with the first column to the left and the others to the right.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (width, cell)) in widths.iter().zip(row).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            if at == 0 {
                let _ = write!(line, "{cell}{gap}");
            } else {
                let _ = write!(line, "  {gap}{cell}");
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
