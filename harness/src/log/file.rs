//! The log as a file: records are added at its end, and each carries a hash over itself and all
//! before it, in a comment that is not seen.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Entry, EntryError};
use crate::archive::{replace_file, sha256_hex};

/// What stands above the first record.
const HEAD: &str = "# Log\n\nWhat was tried, what was expected, and what came of it; dead ends too. Records are added at the end with \
                    `palindrome log add`, and never edited: a correction is a new record that names the one it corrects. \
                    `palindrome log check` finds a record that was edited, moved or taken out.\n";

/// How a record's mark begins and ends; its hash is between.
const MARK: (&str, &str) = ("<!-- palindrome:log ", " -->\n");

/// The hash before the first record.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A log that was read and holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    path: PathBuf,
    text: String,
    /// Records in it.
    pub records: u32,
    last: String,
    date: String,
}

/// What is wrong with a log, or with what is to be added.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file system refused.
    #[error("cannot {0} the log {1}: {2}")]
    Io(&'static str, PathBuf, io::Error),
    /// A record is not as it was written.
    #[error("{path}:{line}: {what}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What does not hold.
        what: String,
    },
    /// The new record cannot be written.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The new record is out of order.
    #[error(
        "the record is of {new}, and the last one of {last}: records stand in order of their dates"
    )]
    Order {
        /// The new one's date.
        new: String,
        /// The last one's.
        last: String,
    },
    /// A correction of nothing.
    #[error("record {0} cannot be corrected: the log has {1}")]
    Corrects(u32, u32),
}

impl Log {
    /// Reads a log and checks every record; an empty one where there is no file.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(path, text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self {
                path: path.to_path_buf(),
                text: HEAD.to_owned(),
                records: 0,
                last: GENESIS.to_owned(),
                date: String::new(),
            }),
            Err(e) => Err(LogError::Io("read", path.to_path_buf(), e)),
        }
    }

    fn parse(path: &Path, text: String) -> Result<Self, LogError> {
        let broken = |at: usize, what: fmt::Arguments<'_>| LogError::Broken {
            path: path.to_path_buf(),
            line: text[..at.min(text.len())].matches('\n').count() + 1,
            what: what.to_string(),
        };
        let (mut records, mut last, mut date) = (0, GENESIS.to_owned(), String::new());
        let Some(mut at) = text
            .find("\n## ")
            .map(|i| i + 1)
            .or_else(|| (!text.contains(MARK.0)).then_some(text.len()))
        else {
            return Err(broken(0, format_args!("there are marks and no records")));
        };
        while at < text.len() {
            let number = records + 1;
            let rest = &text[at..];
            let Some(mark) = rest.find(MARK.0) else {
                return Err(broken(
                    at,
                    format_args!("record {number} has no mark: was it cut off?"),
                ));
            };
            let (record, mark_at) = (&rest[..mark], at + mark);
            let hash_at = mark_at + MARK.0.len();
            let Some(length) = text[hash_at..].find(MARK.1) else {
                return Err(broken(
                    mark_at,
                    format_args!("the mark of record {number} is cut off"),
                ));
            };
            let found = &text[hash_at..hash_at + length];
            let Some(of) = head_date(record, number) else {
                return Err(broken(
                    at,
                    format_args!(
                        "expected the head of record {number}: `## {number}. YYYY-MM-DD, LABEL`"
                    ),
                ));
            };
            let expected = link(&last, record);
            if found != expected {
                return Err(broken(
                    at,
                    format_args!(
                        "record {number} is not what was written there, or one before it was moved or taken out"
                    ),
                ));
            }
            if of < date.as_str() {
                return Err(broken(
                    at,
                    format_args!("record {number} is older than the one before it"),
                ));
            }
            of.clone_into(&mut date);
            last = expected;
            records = number;
            at = hash_at + length + MARK.1.len();
            if let Some(rest) = text[at..].strip_prefix('\n') {
                // A blank line parts records; behind the last one nothing may stand.
                if rest.is_empty() {
                    return Err(broken(
                        at,
                        format_args!("something stands behind the last record"),
                    ));
                }
                at += 1;
            } else if at < text.len() {
                return Err(broken(
                    at,
                    format_args!("something stands behind record {number}"),
                ));
            }
        }
        Ok(Self {
            path: path.to_path_buf(),
            records,
            last,
            date,
            text,
        })
    }

    /// Appends a record and writes the file, whole or not at all; the record's number.
    pub fn add(&mut self, entry: &Entry) -> Result<u32, LogError> {
        let number = self.records + 1;
        if let Some(corrected) = entry.corrects
            && (corrected == 0 || corrected > self.records)
        {
            return Err(LogError::Corrects(corrected, self.records));
        }
        if entry.date.as_str() < self.date.as_str() {
            return Err(LogError::Order {
                new: entry.date.clone(),
                last: self.date.clone(),
            });
        }
        let record = format!("{}\n", entry.text(number)?);
        let hash = link(&self.last, &record);
        let text = format!("{}\n{record}{}{hash}{}", self.text, MARK.0, MARK.1);
        replace_file(&self.path, text.as_bytes())
            .map_err(|e| LogError::Io("write", self.path.clone(), e))?;
        self.text = text;
        self.records = number;
        self.last = hash;
        self.date.clone_from(&entry.date);
        Ok(number)
    }
}

fn link(previous: &str, record: &str) -> String {
    sha256_hex(format!("{previous}\n{record}").as_bytes())
}

/// The date in `## 3. 2026-11-30, MEASURED`, if the number is right.
fn head_date(record: &str, number: u32) -> Option<&str> {
    let head = record.lines().next()?;
    let rest = head.strip_prefix(&format!("## {number}. "))?;
    Some(rest.split_once(", ")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Label;

    fn entry(date: &str, outcome: &str) -> Entry {
        Entry {
            date: date.to_owned(),
            label: Label::Measured,
            hypothesis: "larger blocks\nare faster".to_owned(),
            change: "blocks of 512".to_owned(),
            outcome: outcome.to_owned(),
            archives: vec!["20261130T000000Z-x-1".to_owned()],
            corrects: None,
        }
    }

    fn three(path: &Path) -> String {
        let mut log = Log::open(path).unwrap();
        for (date, outcome) in [
            ("2026-11-29", "one"),
            ("2026-11-30", "two"),
            ("2026-11-30", "three"),
        ] {
            log.add(&entry(date, outcome)).unwrap();
        }
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn records_are_numbered_in_order_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reports/log.md");
        let text = three(&path);
        assert!(
            text.contains(
                "## 2. 2026-11-30, MEASURED\n\n* **Hypothesis**: larger blocks are faster\n"
            ),
            "{text}"
        );
        let mut log = Log::open(&path).unwrap();
        assert_eq!(log.records, 3);
        let older = log.add(&entry("2026-11-29", "x")).unwrap_err().to_string();
        assert!(
            older.starts_with("the record is of 2026-11-29, and the last one of 2026-11-30"),
            "{older}"
        );
        let mut correction = entry("2026-12-01", "it was 512 after all");
        correction.corrects = Some(9);
        assert!(matches!(
            log.add(&correction),
            Err(LogError::Corrects(9, 3))
        ));
        correction.corrects = Some(1);
        assert_eq!(log.add(&correction).unwrap(), 4);
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(&text), "what was written stays");
        assert!(after.contains("* **Corrects**: record 1\n"));
        for (broken, says) in [
            (
                Entry {
                    outcome: " ".to_owned(),
                    ..entry("2026-12-01", "")
                },
                "outcome is empty",
            ),
            (entry("2026-12-01", "a --> b"), "outcome holds"),
            (entry("2026-13-01", "x"), "no date"),
            (
                Entry {
                    archives: vec!["../x".to_owned()],
                    ..entry("2026-12-01", "x")
                },
                "no archive's name",
            ),
        ] {
            let error = log.add(&broken).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(Log::open(&path).unwrap(), log);
    }

    #[test]
    fn what_is_edited_moved_or_taken_out_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.md");
        let text = three(&path);
        let at = |n: u32| text.find(&format!("## {n}. ")).unwrap();
        let (one, two, three) = (&text[at(1)..at(2)], &text[at(2)..at(3)], &text[at(3)..]);
        let head = &text[..at(1)];
        let renumbered = two.replacen("## 2. 2026-11-30", "## 1. 2026-11-30", 1);
        let changed = [
            text.replacen("two", "2", 1),
            text.replacen("MEASURED", "ASSUMED", 1),
            text.replacen("## 3. 2026-11-30", "## 3. 2026-12-30", 1),
            format!("{head}{two}{one}{three}"),
            format!("{head}{one}{three}"),
            format!("{head}{two}{three}"),
            format!("{head}{renumbered}"),
            format!("{text}more\n"),
            format!("{text}\n"),
            format!("{head}before\n{one}{two}{three}").replace("## 1. 2026", "##1. 2026"),
            text.trim_end_matches(MARK.1).to_owned(),
            text[..text.len() - 10].to_owned(),
        ];
        for (i, changed) in changed.iter().enumerate() {
            assert_ne!(*changed, text);
            fs::write(&path, changed).unwrap();
            assert!(
                matches!(Log::open(&path), Err(LogError::Broken { .. })),
                "change {i} was not seen"
            );
        }
        fs::write(&path, &text).unwrap();
        assert_eq!(Log::open(&path).unwrap().records, 3);
    }
}
