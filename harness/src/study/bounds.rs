//! Numbers of a study file that parse and mean nothing: each with its range.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::error::StudyError;
use super::file::StudyFile;

/// Ten days.
const SECONDS: RangeInclusive<f64> = 0.0..=864_000.0;
/// Enough for something to happen.
const SOME_TIME: RangeInclusive<f64> = 0.001..=864_000.0;
const AT_LEAST_ONE: RangeInclusive<f64> = 1.0..=u32::MAX as f64;

/// Refuses the first number that is out of its range, at its place in the text.
pub(super) fn check(path: &Path, text: &str, file: &StudyFile) -> Result<(), StudyError> {
    let (guards, base) = (&file.guards, &file.base);
    let mut numbers = vec![
        (
            "workload",
            0,
            "timeout_s",
            Some(file.workload.timeout_s),
            SOME_TIME,
        ),
        (
            "server",
            0,
            "ready_timeout_s",
            Some(file.server.ready_timeout_s),
            SOME_TIME,
        ),
        (
            "server",
            0,
            "stop_grace_s",
            Some(file.server.stop_grace_s),
            SECONDS,
        ),
        ("guards", 0, "wait_s", Some(guards.wait_s), SECONDS),
        ("guards", 0, "max_load", guards.max_load, 0.0..=f64::MAX),
        (
            "guards",
            0,
            "max_psi_cpu_some10",
            guards.max_psi_cpu_some10,
            0.0..=100.0,
        ),
        (
            "guards",
            0,
            "max_psi_memory_some10",
            guards.max_psi_memory_some10,
            0.0..=100.0,
        ),
        (
            "base",
            0,
            "threads",
            base.threads.map(f64::from),
            AT_LEAST_ONE,
        ),
        ("base", 0, "ctx", base.ctx.map(f64::from), AT_LEAST_ONE),
    ];
    for (i, arm) in file.arms.iter().enumerate() {
        numbers.push((
            "arm",
            i,
            "threads",
            arm.threads.map(f64::from),
            AT_LEAST_ONE,
        ));
        numbers.push(("arm", i, "ctx", arm.ctx.map(f64::from), AT_LEAST_ONE));
    }
    for (table, nth, key, value, range) in numbers {
        let Some(value) = value.filter(|v| !range.contains(v)) else {
            continue;
        };
        let right = match (*range.start(), *range.end()) {
            (low, f64::MAX) => format!("{low} or more"),
            (low, high) => format!("{low} to {high}"),
        };
        let message = format!("{table}.{key} = {value} is out of range: give {right}");
        let span = place(text, table, nth, key).unwrap_or(0..0);
        return Err(StudyError::at(path, text, span, message));
    }
    Ok(())
}

/// Where a value stands: a table by name (the `nth` of an array of tables), a key in it.
fn place(text: &str, table: &str, nth: usize, key: &str) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let found = match document.get_ref().get(table)?.get_ref() {
        DeValue::Array(tables) => tables.get(nth)?.get_ref(),
        found => found,
    };
    Some(found.as_table()?.get(key)?.span())
}
