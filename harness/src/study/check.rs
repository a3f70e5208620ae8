//! Mistakes in a study file, against the list of its keys: each with its place, what was found and
//! what would be right.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{StudyError, nearest};
use super::keys::{Key, Kind, Table};
use super::vocabulary::{STUDY, TABLES};

/// Longest part of the file that a message repeats, in characters.
const LONGEST_FOUND: usize = 40;

/// Refuses a text that is not TOML, or whose keys and values are not those of a study file. All
/// mistakes are told, in the order in which they stand.
pub(super) fn check(path: &Path, text: &str) -> Result<(), StudyError> {
    let document = DeTable::parse(text).map_err(|e| StudyError::from_toml(path, text, &e))?;
    let mut found = Mistakes {
        text,
        list: Vec::new(),
    };
    found.table(&STUDY, "", document.get_ref(), 0..0);
    found.list.sort_by_key(|(span, _)| span.start);
    let mut all: Vec<StudyError> = found
        .list
        .into_iter()
        .map(|(span, what)| StudyError::at(path, text, span, what))
        .collect();
    match all.len() {
        0 => Ok(()),
        1 => Err(all.remove(0)),
        _ => Err(StudyError::Several(all)),
    }
}

struct Mistakes<'a> {
    text: &'a str,
    list: Vec<(Range<usize>, String)>,
}

impl Mistakes<'_> {
    fn add(&mut self, span: Range<usize>, what: String) {
        self.list.push((span, what));
    }

    /// What stands in the file, shortened.
    fn found(&self, span: Range<usize>) -> String {
        let found = self.text.get(span).unwrap_or_default();
        let line = found.lines().next().unwrap_or_default();
        if line.chars().count() <= LONGEST_FOUND && line.len() == found.len() {
            return line.to_owned();
        }
        let start: String = line.chars().take(LONGEST_FOUND).collect();
        format!("{start} ...")
    }

    fn table(&mut self, table: &Table, path: &str, found: &DeTable<'_>, place: Range<usize>) {
        let mut meant = Vec::new();
        for (name, value) in found {
            let Some(key) = table.key(name.get_ref()) else {
                let close = self.unknown(table, name);
                meant.extend(close);
                continue;
            };
            let path = match path {
                "" => key.name.to_owned(),
                path => format!("{path}.{}", key.name),
            };
            self.value(&key.kind, &path, value, key, !table.ranges_elsewhere);
        }
        for key in table.keys().filter(|key| key.required) {
            // A mistyped key is one mistake, not two.
            if found.contains_key(key.name) || meant.contains(&key.name) {
                continue;
            }
            let what = match key.kind {
                Kind::Table(of) | Kind::Tables(of, _) | Kind::TableOrTables(of) => {
                    format!("there is no {}: {}", of.title, first_words(key.about))
                }
                kind => format!(
                    "{} has no `{}`: give {}",
                    table.title,
                    key.name,
                    right(&kind)
                ),
            };
            self.add(place.clone(), what);
        }
    }

    /// A key that the table does not have; gives the one that was meant.
    fn unknown(
        &mut self,
        table: &Table,
        name: &Spanned<std::borrow::Cow<'_, str>>,
    ) -> Option<&'static str> {
        let known: Vec<&'static str> = table.keys().map(|key| key.name).collect();
        let written = name.get_ref();
        let elsewhere: Vec<&str> = TABLES
            .iter()
            .filter(|other| other.key(written).is_some())
            .map(|other| other.title)
            .collect();
        let close = nearest(written, &known);
        let help = if !elsewhere.is_empty() {
            let places = elsewhere.join(" or ");
            format!("`{written}` belongs in {places}")
        } else if let Some(close) = close {
            format!("did you mean `{close}`?")
        } else {
            format!("its keys are {}", known.join(", "))
        };
        let what = format!("unknown key `{written}` in {}; {help}", table.title);
        self.add(name.span(), what);
        close.filter(|_| elsewhere.is_empty())
    }

    fn value(
        &mut self,
        kind: &Kind,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        key: &Key,
        ranges: bool,
    ) {
        let span = value.span();
        let fits = match (kind, value.get_ref()) {
            (Kind::Text, DeValue::String(_))
            | (Kind::Flag, DeValue::Boolean(_))
            | (Kind::Free, DeValue::Table(_)) => true,
            (Kind::Choice(words), DeValue::String(word)) => {
                if !words.contains(&word.as_ref()) {
                    let help = match nearest(word, words) {
                        Some(close) => format!("; did you mean `{close}`?"),
                        None => String::new(),
                    };
                    let words = words.join(", ");
                    self.add(
                        span,
                        format!("{path} = {word:?} is unknown: give one of {words}{help}"),
                    );
                }
                return;
            }
            (
                Kind::Whole(..)
                | Kind::Number(..)
                | Kind::Above0(_)
                | Kind::Share
                | Kind::WholeOrList(..),
                DeValue::Integer(_),
            )
            | (Kind::Number(..) | Kind::Above0(_) | Kind::Share, DeValue::Float(_)) => {
                if let Some(what) = number(kind, value.get_ref(), ranges) {
                    let zero = key.zero.filter(|_| what == "0");
                    let out = zero.unwrap_or("is out of range");
                    self.add(span, format!("{path} = {what} {out}: give {}", range(kind)));
                }
                return;
            }
            (Kind::List(of, least), DeValue::Array(list)) => {
                for (i, item) in list.iter().enumerate() {
                    self.value(of, &format!("{path}[{i}]"), item, key, ranges);
                }
                if list.len() < *least && ranges {
                    let is = key.zero.unwrap_or("is empty");
                    self.add(span, format!("{path} = [] {is}: give {}", right(kind)));
                }
                return;
            }
            (Kind::WholeOrList(low, high), DeValue::Array(list)) => {
                for (i, item) in list.iter().enumerate() {
                    let of = Kind::Whole(*low, *high);
                    self.value(&of, &format!("{path}[{i}]"), item, key, ranges);
                }
                return;
            }
            (Kind::Texts, DeValue::Table(table)) => {
                for (name, item) in table {
                    let path = format!("{path}.{}", name.get_ref());
                    self.value(&Kind::Text, &path, item, key, ranges);
                }
                return;
            }
            (Kind::Table(of) | Kind::TableOrTables(of), DeValue::Table(table)) => {
                self.table(of, path, table, span);
                return;
            }
            (Kind::TableOrTables(of), DeValue::Array(tables)) => {
                for table in tables {
                    match table.get_ref() {
                        DeValue::Table(found) => self.table(of, path, found, table.span()),
                        _ => self.wrong(kind, path, table),
                    }
                }
                return;
            }
            (Kind::Tables(of, least), DeValue::Array(tables)) => {
                for table in tables {
                    match table.get_ref() {
                        DeValue::Table(found) => self.table(of, path, found, table.span()),
                        _ => self.wrong(kind, path, table),
                    }
                }
                if tables.len() < *least {
                    let last = tables.last().map_or(span, Spanned::span);
                    let what = format!(
                        "{} {} given; a comparison needs at least two `{}` tables",
                        tables.len(),
                        path,
                        of.title
                    );
                    self.add(last, what);
                }
                return;
            }
            _ => false,
        };
        if !fits {
            self.wrong(kind, path, value);
        }
    }

    /// A value of another type.
    fn wrong(&mut self, kind: &Kind, path: &str, value: &Spanned<DeValue<'_>>) {
        let is = match value.get_ref() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let found = match value.get_ref() {
            // Where a table's text begins and ends depends on how it is written.
            DeValue::Table(_) => String::new(),
            _ => format!(" = {}", self.found(value.span())),
        };
        self.add(
            value.span(),
            format!("{path}{found} is {is}: give {}", right(kind)),
        );
    }
}

/// A number that is not one of its kind's, as it is written.
fn number(kind: &Kind, value: &DeValue<'_>, ranges: bool) -> Option<String> {
    let written = match value {
        DeValue::Integer(n) => n.to_string(),
        DeValue::Float(n) => n.to_string(),
        _ => return None,
    };
    let inside = match (kind, value) {
        (Kind::Whole(low, high) | Kind::WholeOrList(low, high), DeValue::Integer(n)) => {
            match u64::from_str_radix(n.as_str(), n.radix()) {
                Ok(n) if ranges => (*low..=*high).contains(&n),
                // All others are read into 32 bits.
                Ok(n) => n <= (*high).max(u32::MAX.into()),
                Err(_) => false,
            }
        }
        (kind, DeValue::Integer(n)) => {
            let n = i64::from_str_radix(n.as_str(), n.radix());
            n.is_ok_and(|n| !ranges || within(kind, n as f64))
        }
        (kind, DeValue::Float(n)) => n.as_str().parse().is_ok_and(|n| !ranges || within(kind, n)),
        _ => true,
    };
    (!inside).then_some(written)
}

fn within(kind: &Kind, n: f64) -> bool {
    match kind {
        Kind::Number(low, high) => (*low..=*high).contains(&n),
        Kind::Above0(high) => n > 0.0 && n <= *high,
        Kind::Share => n > 0.0 && n < 1.0,
        _ => true,
    }
}

/// The numbers of a kind.
fn range(kind: &Kind) -> String {
    match kind {
        Kind::Whole(low, high) | Kind::WholeOrList(low, high) => format!("{low} to {high}"),
        Kind::Number(low, f64::MAX) => format!("{low} or more"),
        Kind::Number(low, high) => format!("{low} to {high}"),
        Kind::Above0(high) => format!("more than 0, up to {high}"),
        Kind::Share => "a share between 0 and 1, such as 0.05 for 5%".to_owned(),
        kind => right(kind),
    }
}

/// What would be right, in words.
pub(super) fn right(kind: &Kind) -> String {
    match kind {
        Kind::Text => "text in quotes".to_owned(),
        Kind::Flag => "true or false, without quotes".to_owned(),
        Kind::Choice(words) => format!("one of {}, in quotes", words.join(", ")),
        Kind::Whole(..) => format!("a whole number, {}", range(kind)),
        Kind::WholeOrList(..) => format!(
            "a whole number, or a list of them with one a level, {}",
            range(kind)
        ),
        Kind::Number(..) | Kind::Above0(_) => format!("a number, {}", range(kind)),
        Kind::Share => range(kind),
        Kind::List(of, _) => format!(
            "a list in brackets, each {}",
            right(of).trim_start_matches("a ")
        ),
        Kind::Free => "a table, such as { name = 1 }".to_owned(),
        Kind::Texts => "names with texts, such as { NAME = \"value\" }".to_owned(),
        Kind::Table(of) | Kind::TableOrTables(of) => format!("a table, under a line {}", of.title),
        Kind::Tables(of, _) => format!("tables, each under a line {}", of.title),
    }
}

fn first_words(about: &str) -> String {
    let about = about.split('.').next().unwrap_or(about);
    let mut letters = about.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_lowercase().collect::<String>() + letters.as_str()
    })
}
