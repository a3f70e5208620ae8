//! A probe's outcome, for people and for programs.

use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Figure, Host, Load, ProbeError, Quantity};

/// The value of `format` in a probe's JSON.
pub const FORMAT: &str = "palindrome-probe";
/// The version of that format.
pub const VERSION: u32 = 1;

/// Other processes' work above which a reader is warned, in processors.
const NOTICEABLE: f64 = 0.1;

/// What was measured, on what machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The engine's version.
    pub engine: String,
    /// The machine.
    pub host: Host,
    /// The instruction-set level of the loops.
    pub isa: String,
    /// The work of others in the meantime, where the system counts it.
    pub other_load: Option<Load>,
    /// What was read for the disk figures.
    pub disk: Option<String>,
    /// What a reader must know.
    pub warnings: Vec<String>,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Report {
    /// The figure of `quantity` with `threads` threads.
    pub fn find(&self, quantity: Quantity, threads: usize) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|figure| figure.quantity == quantity && figure.threads == threads)
    }

    /// Reads what `probe --json` wrote.
    pub fn read(path: &Path) -> Result<Self, ProbeError> {
        let fail = |why: String| ProbeError::NoProbe {
            path: path.to_owned(),
            why,
        };
        let text = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
        let report: Self = serde_json::from_slice(&text).map_err(|error| {
            fail(format!(
                "not the output of `palindrome-engine probe --json`: {error}"
            ))
        })?;
        if report.format != FORMAT || report.version != VERSION {
            return Err(fail(format!(
                "format {:?}, version {}; expected {FORMAT:?}, version {VERSION}",
                report.format, report.version
            )));
        }
        let sound = |figure: &Figure| figure.best.is_finite() && figure.best > 0.0;
        match report.figures.iter().find(|figure| !sound(figure)) {
            Some(figure) => Err(fail(format!(
                "the rate of {} with {} threads is {}; expected a number above 0",
                figure.quantity.title(),
                figure.threads,
                figure.best
            ))),
            None => Ok(report),
        }
    }

    /// The table, with what it was measured on and how.
    pub fn table(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        let cpu = self.host.cpu.as_deref().unwrap_or("an unnamed processor");
        line(format!(
            "{cpu}, {} processors, {}",
            self.host.processors, self.isa
        ));
        if let Some(load) = self.other_load {
            line(format!(
                "other work meanwhile: {:.2} of {} processors{}",
                load.other_processors,
                self.host.processors,
                if load.other_processors > NOTICEABLE {
                    " - these figures are below the machine's limits"
                } else {
                    ""
                }
            ));
        }
        for warning in &self.warnings {
            line(format!("! {warning}"));
        }
        line(String::new());
        line(format!(
            "{:<20} {:>9} {:>10} {:>10} {:<7} {:>6}  how",
            "limit", "threads", "best", "median", "unit", "passes"
        ));
        for figure in &self.figures {
            let unit = if figure.quantity.is_bytes() {
                "GB/s"
            } else {
                "Gop/s"
            };
            let threads = match figure.quantity {
                Quantity::DiskRead => format!("depth {}", figure.threads),
                _ => figure.threads.to_string(),
            };
            line(format!(
                "{:<20} {threads:>9} {:>10.2} {:>10.2} {unit:<7} {:>6}  {}",
                figure.quantity.title(),
                figure.best / 1e9,
                figure.median / 1e9,
                figure.passes,
                figure.how
            ));
        }
        if !self.figures.iter().any(|f| f.quantity == Quantity::Bf16Dot) {
            line("bf16 dot: not in this processor, or not at this level".to_owned());
        }
        line(String::new());
        line(
            "MEASURED. G is 10^9; a multiplication and an addition are two operations.".to_owned(),
        );
        if let Some(disk) = &self.disk {
            line(format!("disk: {disk}"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that never was.
    fn report() -> Report {
        let figure = |quantity, threads, rates: &[f64], how: &str| {
            Figure::new(quantity, threads, rates, how)
        };
        Report {
            format: FORMAT.to_owned(),
            version: VERSION,
            engine: "0.1.0".to_owned(),
            host: Host {
                cpu: Some("Abacus 9000".to_owned()),
                processors: 2,
                last_level_cache_bytes: Some(32 << 20),
                free_memory_bytes: None,
            },
            isa: "avx2".to_owned(),
            other_load: Some(Load {
                other_processors: 0.75,
            }),
            disk: Some("a temporary file of 512 MiB in /tmp".to_owned()),
            warnings: vec!["O_DIRECT was refused".to_owned()],
            figures: vec![
                figure(
                    Quantity::DramRead,
                    1,
                    &[17e9, 18e9, 19.5e9],
                    "256-bit loads",
                ),
                figure(Quantity::DramRead, 2, &[30e9, 26e9], "256-bit loads"),
                figure(Quantity::Int8Dot, 2, &[469e9, 468e9, 400e9], "vpmaddubsw"),
                figure(Quantity::DiskRead, 8, &[1.25e9], "pread"),
            ],
        }
    }

    #[test]
    fn the_table_of_scripted_numbers() {
        insta::assert_snapshot!(report().table());
    }

    #[test]
    fn the_json_of_scripted_numbers() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&report()).unwrap());
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.json");
        let written = |report: &Report| {
            std::fs::write(&path, serde_json::to_vec(report).unwrap()).unwrap();
            Report::read(&path).map_err(|error| {
                error
                    .to_string()
                    .rsplit_once(".json: ")
                    .unwrap()
                    .1
                    .to_owned()
            })
        };
        assert_eq!(written(&report()).unwrap(), report());
        let mut odd = report();
        odd.version = 7;
        insta::assert_snapshot!(written(&odd).unwrap_err(), @r#"format "palindrome-probe", version 7; expected "palindrome-probe", version 1"#);
        let mut odd = report();
        odd.figures[1].best = -3.0;
        insta::assert_snapshot!(written(&odd).unwrap_err(), @"the rate of DRAM read with 2 threads is -3; expected a number above 0");
        std::fs::write(&path, b"[1]").unwrap();
        assert!(
            Report::read(&path)
                .unwrap_err()
                .to_string()
                .contains("not the output of")
        );
    }
}
