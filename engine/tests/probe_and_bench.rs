//! The commands `probe` and `bench`: that they run to their end on a tiny model, and what they
//! refuse. No test here looks at how fast anything was.
#![allow(missing_docs, reason = "tests")]

mod support;

use std::path::Path;

use palindrome_engine::probe::{Quantity, Report};
use serde_json::Value;
use support::{output, stderr, stdout};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/gpt-oss-8x4.gguf");

/// A probe's JSON in a file.
fn probe_into(path: &Path) -> Report {
    let flags = [
        "--seconds",
        "0.2",
        "--threads",
        "1",
        "--file-size-mib",
        "64",
    ];
    let done = output(&[&["probe", "--json"][..], &flags[..]].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    std::fs::write(path, &done.stdout).unwrap();
    Report::read(path).unwrap()
}

#[test]
fn probe_measures_and_bench_takes_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probe.json");
    let report = probe_into(&path);
    for quantity in [
        Quantity::DramRead,
        Quantity::Int8Dot,
        Quantity::F32MulAdd,
        Quantity::DiskRead,
    ] {
        let figure = report.find(quantity, 1).unwrap();
        assert!(
            figure.best.is_finite() && figure.median > 0.0 && figure.best >= figure.median,
            "{figure:?}"
        );
        assert_eq!(figure.label, "MEASURED");
    }
    let depths: Vec<usize> = report
        .figures
        .iter()
        .filter(|figure| figure.quantity == Quantity::DiskRead)
        .map(|figure| figure.threads)
        .collect();
    assert_eq!(depths, [1, 2, 4, 8]);

    let probe = path.to_str().unwrap();
    let flags = [
        "-p", "0,16,40", "-n", "3", "-d", "0,8", "-r", "2", "-t", "1", "-o", "json", "--probe",
        probe,
    ];
    let done = output(&[&["bench", MODEL, "--no-store"][..], &flags[..]].concat());
    assert!(done.status.success(), "{}", stderr(&done));
    let rows: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["test"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["pp16", "pp40", "tg3", "pp16 @ d8", "pp40 @ d8", "tg3 @ d8"]
    );
    for row in &rows {
        let number = |name: &str| {
            row[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {row}"))
        };
        for name in [
            "avg_ts",
            "median_ts",
            "avg_ns",
            "weight_bytes_per_token",
            "model_size",
        ] {
            assert!(
                number(name).is_finite() && number(name) > 0.0,
                "{name}: {row}"
            );
        }
        assert!(number("stddev_ts").is_finite(), "{row}");
        for name in ["samples_ns", "samples_ts"] {
            let samples = row[name].as_array().unwrap();
            assert_eq!(samples.len(), 2);
            assert!(samples.iter().all(|s| s.as_f64().unwrap() > 0.0), "{row}");
        }
        assert_eq!(row["n_ctx"], 48, "as long as the longest test needs");
        if number("n_prompt") > 0.0 {
            assert!(number("int8_share") > 0.0, "{row}");
            assert!(row["dram_read_bytes_per_s"].is_null(), "{row}");
        } else {
            assert!(number("dram_read_bytes_per_s") > 0.0, "{row}");
            assert!(row["int8_share"].is_null(), "{row}");
        }
    }
}

#[test]
fn bench_writes_every_format_without_a_probe() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("rates");
    let flags = [
        "-p",
        "8",
        "-n",
        "2",
        "-r",
        "1",
        "-t",
        "1,2",
        "-o",
        "md,json,csv",
        "--no-probe",
        "--activations",
        "f32",
        "--out",
    ];
    let args = [
        &["bench", MODEL, "--no-store"][..],
        &flags[..],
        &[prefix.to_str().unwrap()],
    ]
    .concat();
    let done = output(&args);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(stdout(&done), "");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&read("rates.json")).unwrap();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        for name in ["stddev_ts", "dram_share", "int8_share", "int8_ops"] {
            assert!(row[name].is_null(), "{name}: {row}");
        }
    }
    let csv = read("rates.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[0].starts_with("engine,cpu_info,isa,"), "{}", lines[0]);
    let table = read("rates.md");
    assert!(
        table.starts_with("| model") && table.contains("tg2"),
        "{table}"
    );
}

/// What a wrong command line is told, and its exit code.
fn refused(args: &[&str]) -> (Option<i32>, String) {
    let done = output(args);
    assert_eq!(stdout(&done), "", "{args:?}");
    (done.status.code(), stderr(&done))
}

#[test]
fn nonsense_is_refused() {
    let bench = |flags: &[&str]| refused(&[&["bench", MODEL, "--no-store"][..], flags].concat());
    let probe = |flags: &[&str]| refused(&[&["probe"][..], flags].concat());
    let folder = tempfile::tempdir().unwrap();
    let junk = folder.path().join("junk.json");
    std::fs::write(&junk, b"{}").unwrap();
    let junk = junk.to_str().unwrap();
    for (found, code, told) in [
        (
            bench(&["-p", "0", "-n", "0"]),
            1,
            "there is nothing to measure: every -p and -n is 0",
        ),
        (
            bench(&["-p", "100", "-d", "20", "--ctx", "64"]),
            1,
            "--ctx is 64 and tg128 @ d20 needs 148 tokens",
        ),
        (bench(&["-p", "99999999"]), 2, "99999999 is not in"),
        (bench(&["-r", "0"]), 2, "0 is not in"),
        (bench(&["-t", "1,none"]), 2, "invalid digit"),
        (bench(&["-o", "xml"]), 2, "possible values: md, json, csv"),
        (
            bench(&["--isa", "abacus"]),
            1,
            "no instruction-set level \"abacus\"",
        ),
        (
            bench(&["--probe-seconds", "nan"]),
            1,
            "--probe-seconds must lie between 0.1 and 3600, got NaN",
        ),
        (
            bench(&["--probe", junk]),
            1,
            "not the output of `palindrome-engine probe --json`",
        ),
        (
            bench(&["-p", "1000000", "--no-probe"]),
            1,
            "a context of 1000000 tokens was asked for",
        ),
        (
            refused(&["bench", "/nowhere/m.gguf", "--no-store"]),
            1,
            "cannot load /nowhere/m.gguf",
        ),
        (
            probe(&["--seconds", "0"]),
            1,
            "--seconds must lie between 0.1 and 3600, got 0",
        ),
        (probe(&["--seconds", "x"]), 2, "invalid float"),
        (
            probe(&["--threads", "1024", "--no-disk"]),
            1,
            "1024 threads were asked for and this process may use",
        ),
        (
            probe(&["--file", "/nowhere/f"]),
            1,
            "cannot time reads of /nowhere/f",
        ),
        (
            probe(&["--file", MODEL, "--no-disk"]),
            2,
            "cannot be used with",
        ),
    ] {
        assert_eq!(found.0, Some(code), "{}", found.1);
        assert!(found.1.contains(told), "expected {told:?} in {}", found.1);
    }
}
