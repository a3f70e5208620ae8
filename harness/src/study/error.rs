//! A study file's mistakes: what, where, and what would be right.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// A study that cannot be run as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("cannot read the study file {path}: {reason}")]
    Unreadable {
        /// As given.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// Something in it is wrong.
    #[error("{path}:{line}:{column}: {message}")]
    Invalid {
        /// As given.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// More than one thing is, in the order in which they stand.
    #[error("{}", lines(.0))]
    Several(Vec<StudyError>),
}

fn lines(all: &[StudyError]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join("\n")
}

impl StudyError {
    /// An error at a byte range of the file's text.
    pub(super) fn at(
        path: &Path,
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Self::Invalid {
            path: path.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }

    /// The TOML reader's own error: where the text is no TOML.
    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let message = error.message().replace('\n', "; ");
        Self::at(path, text, error.span().unwrap_or(0..0), message)
    }
}

/// The known name that is closest, if it is close enough to be meant.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|k| (distance(word, k), *k))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, k)| *d <= (k.chars().count().max(word.chars().count()) / 2).max(1))
        .map(|(_, k)| k)
}

/// Edits (insert, delete, replace) from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(
            nearest("thread", &["model", "threads", "ctx"]),
            Some("threads")
        );
        assert_eq!(nearest("zzzzzz", &["model", "threads"]), None);
    }
}
