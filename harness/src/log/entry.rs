//! One record of the log, as text.

use std::fmt::Write as _;

use crate::derive::Label;

/// What is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `YYYY-MM-DD`.
    pub date: String,
    /// How the outcome is known.
    pub label: Label,
    /// What was expected.
    pub hypothesis: String,
    /// What was changed to see.
    pub change: String,
    /// What was seen and decided.
    pub outcome: String,
    /// Folder names of archives that show it.
    pub archives: Vec<String>,
    /// The record that this one corrects.
    pub corrects: Option<u32>,
}

/// A record that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A text that says nothing.
    #[error("{0} is empty: say it in a sentence")]
    Empty(&'static str),
    /// A text that would be read as a mark.
    #[error("{0} holds `<!--` or `-->`, which the log keeps for its own marks")]
    Mark(&'static str),
    /// Not a date.
    #[error("{0:?} is no date: give YYYY-MM-DD")]
    Date(String),
    /// Not the name of a folder.
    #[error("{0:?} is no archive's name: give that of its folder")]
    Archive(String),
}

impl Entry {
    /// The record as it stands in the log, with its number.
    pub fn text(&self, number: u32) -> Result<String, EntryError> {
        if !is_date(&self.date) {
            return Err(EntryError::Date(self.date.clone()));
        }
        let mut out = format!("## {number}. {}, {}\n\n", self.date, self.label.word());
        if let Some(corrected) = self.corrects {
            let _ = writeln!(out, "* **Corrects**: record {corrected}");
        }
        let _ = writeln!(
            out,
            "* **Hypothesis**: {}",
            line("hypothesis", &self.hypothesis)?
        );
        let _ = writeln!(out, "* **Change**: {}", line("change", &self.change)?);
        let _ = writeln!(out, "* **Archive**: {}", self.links()?);
        let _ = writeln!(out, "* **Outcome**: {}", line("outcome", &self.outcome)?);
        Ok(out)
    }

    fn links(&self) -> Result<String, EntryError> {
        if self.archives.is_empty() {
            return Ok("none kept".to_owned());
        }
        let link = |name: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
                return Err(EntryError::Archive(name.clone()));
            }
            Ok(format!("[{name}](../archives/{name})"))
        };
        let links: Result<Vec<String>, EntryError> = self.archives.iter().map(link).collect();
        Ok(links?.join(", "))
    }
}

/// A text on one line, so that it stays in its place in the record.
fn line(what: &'static str, text: &str) -> Result<String, EntryError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    if text.is_empty() {
        return Err(EntryError::Empty(what));
    }
    if text.contains("<!--") || text.contains("-->") {
        return Err(EntryError::Mark(what));
    }
    Ok(text)
}

/// `2026-11-30`: four, two and two digits, month and day in range.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |part: &&str, width: usize, most: u32| {
        let digits = part.len() == width && part.bytes().all(|b| b.is_ascii_digit());
        digits && part.parse::<u32>().is_ok_and(|n| (1..=most).contains(&n))
    };
    match parts.as_slice() {
        [year, month, day] => number(year, 4, 9999) && number(month, 2, 12) && number(day, 2, 31),
        _ => false,
    }
}
