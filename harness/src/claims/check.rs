//! Marked blocks held to their archives.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::block::{Block, Wanted, blocks};
use super::number::shown;
use crate::archive::Archive;
use crate::audit::audit;
use crate::derive::Figures;

/// Something in a file that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Line of the file, from 1.
    pub line: usize,
    /// What does not hold.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// What was checked in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Marked blocks.
    pub blocks: usize,
    /// Numbers compared with a figure.
    pub numbers: usize,
    /// What does not hold; empty when everything does.
    pub findings: Vec<Finding>,
}

/// Archives by folder name, each audited once, below one folder.
#[derive(Debug)]
pub struct Kept {
    folder: PathBuf,
    read: BTreeMap<String, Result<Figures, String>>,
}

impl Kept {
    /// Archives of a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            read: BTreeMap::new(),
        }
    }

    /// The figures of an archive that passes its audit, or why there are none.
    pub fn figures(&mut self, name: &str) -> &Result<Figures, String> {
        let path = self.folder.join(name);
        let read = || audited(&path);
        self.read.entry(name.to_owned()).or_insert_with(read)
    }
}

fn audited(path: &Path) -> Result<Figures, String> {
    let place = path.display();
    if !path.is_dir() {
        return Err(format!("there is no archive {place}"));
    }
    let outcome = audit(path).map_err(|e| format!("{place} cannot be audited: {e}"))?;
    if let Some(first) = outcome.mismatches.first() {
        return Err(format!(
            "{place} fails its audit ({} mismatches): {first}",
            outcome.mismatches.len()
        ));
    }
    let figures = Archive::open(path).and_then(|archive| archive.figures());
    figures
        .map_err(|e| e.to_string())?
        .ok_or_else(|| format!("{place} holds no figures"))
}

/// Checks every marked block of a Markdown text.
pub fn check(markdown: &str, kept: &mut Kept) -> Checked {
    let mut checked = Checked::default();
    for found in blocks(markdown) {
        checked.blocks += 1;
        match found {
            Ok(block) => one(&block, kept, &mut checked),
            Err(error) => checked.findings.push(Finding {
                line: error.line,
                what: error.what,
            }),
        }
    }
    checked
}

fn one(block: &Block, kept: &mut Kept, checked: &mut Checked) {
    let mut fail = |line, what| checked.findings.push(Finding { line, what });
    let figures = match kept.figures(&block.archive) {
        Ok(figures) => figures,
        Err(why) => return fail(block.line, why.clone()),
    };
    let numbers = shown(&block.text);
    let line = |at: usize| block.line + block.text[..at].matches('\n').count();
    for (number, wanted) in numbers.iter().zip(&block.wanted) {
        let (digits, line) = (&number.digits, line(number.at));
        let (id, scale) = match wanted {
            Wanted::Literal(literal) if literal == digits => continue,
            Wanted::Literal(literal) => {
                fail(
                    line,
                    format!("{digits} stands where the mark says ={literal}"),
                );
                continue;
            }
            Wanted::Figure { id, scale } => (id, *scale),
        };
        checked.numbers += 1;
        let Some(figure) = figures.get(id) else {
            let archive = &block.archive;
            fail(line, format!("{digits}: {archive} has no figure {id}"));
            continue;
        };
        let Some(value) = figure.value() else {
            fail(
                line,
                format!("{digits}: {id} has no value in {}", block.archive),
            );
            continue;
        };
        if let Some(why) = number.differs(value, scale) {
            let archive = &block.archive;
            fail(
                line,
                format!("{digits}: {id} is {value} in {archive}; {why}"),
            );
        }
    }
    if numbers.len() != block.wanted.len() {
        let first = numbers.get(block.wanted.len());
        let at = first.map_or(block.line, |n| line(n.at));
        let more = first.map_or_else(String::new, |n| format!(": {} stands for none", n.digits));
        let what = format!(
            "the block shows {} numbers and its mark names {}{more}",
            numbers.len(),
            block.wanted.len()
        );
        fail(at, what);
    }
}
