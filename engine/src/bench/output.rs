//! Rows as Markdown, JSON and CSV.

use std::fmt::Write;

use clap::ValueEnum;
use serde_json::Value;

use super::Row;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    Md,
    /// An array with one object a test, raw repetitions included
    Json,
    /// One line a test, without the raw repetitions
    Csv,
}

impl Format {
    /// The ending of a file in this format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Md => "md",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

/// The text, ending with a line break.
pub fn render(format: Format, rows: &[Row]) -> String {
    match format {
        Format::Md => markdown(rows),
        Format::Json => {
            let values: Value = rows.iter().map(value).collect();
            format!("{values:#}\n")
        }
        Format::Csv => csv(rows),
    }
}

fn value(row: &Row) -> Value {
    serde_json::to_value(row).expect("a row is plain fields, which serde_json always takes")
}

/// Every field but arrays and objects, in quotes; a missing one is empty.
fn csv(rows: &[Row]) -> String {
    let mut out = String::new();
    for (i, row) in rows.iter().enumerate() {
        let value = value(row);
        let fields: Vec<(&String, &Value)> = value
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_array() && !value.is_object())
            .collect();
        if i == 0 {
            let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
            out += &names.join(",");
            out.push('\n');
        }
        let cells: Vec<String> = fields.iter().map(|(_, value)| cell(value)).collect();
        out += &cells.join(",");
        out.push('\n');
    }
    out
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        other => format!("\"{other}\""),
    }
}

const COLUMNS: [&str; 10] = [
    "model",
    "size",
    "params",
    "isa",
    "activations",
    "K/V",
    "threads",
    "test",
    "t/s",
    "share of limit",
];

fn markdown(rows: &[Row]) -> String {
    let cells: Vec<[String; 10]> = rows.iter().map(cells).collect();
    let widths: [usize; 10] = std::array::from_fn(|i| {
        let widest = cells.iter().map(|row| row[i].chars().count()).max();
        widest.unwrap_or(0).max(COLUMNS[i].len())
    });
    let mut out = String::new();
    let mut line = |row: [&str; 10]| {
        for (i, (text, width)) in row.iter().zip(widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = match i {
                0 | 3..=5 => write!(out, "| {text:<width$} "),
                _ => write!(out, "| {text:>width$} "),
            };
        }
        out += "|\n";
    };
    line(COLUMNS);
    let rules: [String; 10] = std::array::from_fn(|i| match i {
        0 | 3..=5 => "-".repeat(widths[i]),
        _ => "-".repeat(widths[i] - 1) + ":",
    });
    line(std::array::from_fn(|i| rules[i].as_str()));
    for row in &cells {
        line(std::array::from_fn(|i| row[i].as_str()));
    }
    for note in notes(rows) {
        let _ = write!(out, "\n{note}\n");
    }
    out
}

fn cells(row: &Row) -> [String; 10] {
    let rate = match row.stddev_ts {
        Some(deviation) => format!("{:.2} ± {deviation:.2}", row.avg_ts),
        None => format!("{:.2}", row.avg_ts),
    };
    let share = match (row.dram_share, row.int8_share) {
        (Some(share), _) => format!("{:.1}% DRAM", share * 100.0),
        (None, Some(share)) => format!("{:.1}% int8", share * 100.0),
        (None, None) => String::new(),
    };
    [
        row.model_type.replace('|', "/"),
        size(row.model_size),
        count(row.model_n_params),
        row.isa.clone(),
        row.activations.clone(),
        row.type_k.clone(),
        row.n_threads.to_string(),
        row.test.clone(),
        rate,
        share,
    ]
}

fn size(bytes: u64) -> String {
    let mib = bytes as f64 / (1u64 << 20) as f64;
    if mib < 1024.0 {
        format!("{mib:.2} MiB")
    } else {
        format!("{:.2} GiB", mib / 1024.0)
    }
}

fn count(n: u64) -> String {
    if n < 1_000_000_000 {
        format!("{:.2} M", n as f64 / 1e6)
    } else {
        format!("{:.2} B", n as f64 / 1e9)
    }
}

/// Other processes' work above which a reader is warned, in processors.
const NOTICEABLE: f64 = 0.1;

/// What the figures rest on, a sentence or two each.
fn notes(rows: &[Row]) -> Vec<String> {
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let warm = if first.warmup {
        "after one warm-up"
    } else {
        "without a warm-up"
    };
    let mut notes = vec![format!(
        "Times are MEASURED; t/s is the mean of {} repetitions {warm}, with their standard deviation.",
        first.repetitions
    )];
    notes.push(format!(
        "A token must read {:.3} GB of weights (CALCULATED).",
        first.weight_bytes_per_token as f64 / 1e9
    ));
    let mut seen = Vec::new();
    for row in rows {
        for (what, limit, unit) in [
            ("DRAM read", row.dram_read_bytes_per_s, "GB/s"),
            ("int8", row.int8_peak_ops_per_s, "Gop/s"),
        ] {
            let Some(limit) = limit else { continue };
            let text = format!(
                "{what} {:.1} {unit} with {} threads",
                limit / 1e9,
                row.n_threads
            );
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
    }
    if !seen.is_empty() {
        notes.push(format!(
            "Limits (MEASURED, best pass): {}.",
            seen.join("; ")
        ));
    }
    if rows
        .iter()
        .any(|row| row.dram_read_bytes_per_s.is_some() && row.dram_share.is_none())
    {
        notes.push(
            "The model fits in the last-level cache: memory does not limit it, and no share is given."
                .to_owned(),
        );
    }
    let busiest = rows
        .iter()
        .filter_map(|row| row.other_processors)
        .fold(0.0, f64::max);
    if busiest > NOTICEABLE {
        notes.push(format!(
            "Other processes used up to {busiest:.2} processors during a test (MEASURED): these rates are below what the machine can do."
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::row::Setting;
    use super::super::{Cost, Limits, Rates, Test, Work};
    use super::*;

    /// Two tests of a model that never was, on a machine that never was.
    fn rows(cache: u64, load: f64) -> Vec<Row> {
        let setting = Setting {
            cpu_info: Some("Abacus \"9000\"".to_owned()),
            isa: "avx2".to_owned(),
            activations: "int16".to_owned(),
            kv_type: "f16".to_owned(),
            model_filename: "m.gguf".to_owned(),
            model_type: "a|model".to_owned(),
            n_threads: 2,
            n_ctx: 4224,
            n_batch: 128,
            seed: 1,
            warmup: true,
        };
        let cost = Cost {
            params: 20_900_000_000,
            model_bytes: 12_100_000_000,
            weight_bytes_per_token: 2_560_000_000,
            int8_ops_per_token: Some(10_000_000_000),
            int8_ops_per_logits: Some(2_000_000_000),
        };
        let limits = Limits {
            dram_bytes_per_s: Some(26e9),
            int8_ops_per_s: Some(900e9),
            last_level_cache_bytes: Some(cache),
        };
        let times = |ms: &[u64]| -> Vec<Duration> {
            ms.iter().map(|&ms| Duration::from_millis(ms)).collect()
        };
        let prompt = Test {
            work: Work::Prompt(512),
            depth: 0,
        };
        let decode = Test {
            work: Work::Generate(10),
            depth: 4096,
        };
        let row = |test: Test, ms: &[u64], at| {
            let rates = Rates::new(test.tokens(), &times(ms));
            Row::new(&setting, test, &rates, &cost, &limits, at, Some(load))
        };
        vec![
            row(prompt, &[10_000, 10_240], 1_790_000_000),
            row(decode, &[1000, 1250], 1_790_000_100),
        ]
    }

    #[test]
    fn the_table_of_scripted_numbers() {
        insta::assert_snapshot!(render(Format::Md, &rows(32 << 20, 0.02)));
    }

    #[test]
    fn the_table_of_a_busy_machine_and_a_model_in_the_cache() {
        insta::assert_snapshot!(render(Format::Md, &rows(1 << 40, 1.5)));
    }

    #[test]
    fn one_repetition_has_no_deviation() {
        let mut rows = rows(32 << 20, 0.0);
        rows.truncate(1);
        rows[0].stddev_ts = None;
        let table = render(Format::Md, &rows);
        assert!(table.contains("| 50.60 |"), "{table}");
        assert!(!table.contains("50.60 ±"), "{table}");
    }

    #[test]
    fn the_json_of_scripted_numbers() {
        insta::assert_snapshot!(render(Format::Json, &rows(32 << 20, 0.02)));
    }

    #[test]
    fn the_csv_of_scripted_numbers() {
        insta::assert_snapshot!(render(Format::Csv, &rows(32 << 20, 0.02)));
    }
}
