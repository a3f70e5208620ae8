//! Sentences that a text may use, with the marks that hold them to their archive.

use std::collections::BTreeSet;

use serde::Serialize;

use super::number::shown;
use crate::archive::{Archive, ArchiveError, Facts};
use crate::derive::{Comparison, Figures, Published, three_digits};
use crate::report::{in_words, number, unit_text};
use crate::stats::{Difference, difference};

/// A sentence and what its numbers are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Number, unit, label, what, against what, on what, when, which archive.
    pub sentence: String,
    /// Its numbers, as a mark lists them.
    pub figures: Vec<String>,
    /// The archive's folder name.
    pub archive: String,
}

impl Claim {
    /// The sentence between its marks. Ends with a newline.
    pub fn marked(&self) -> String {
        format!(
            "<!-- palindrome:claim archive={}\n{}\n-->\n{}\n<!-- palindrome:end -->\n",
            self.archive,
            self.figures.join("\n"),
            self.sentence
        )
    }
}

/// One claim for each comparison that has an interval, and one line for each that has none.
pub fn claims(
    archive: &Archive,
    figures: &Figures,
) -> Result<(Vec<Claim>, Vec<String>), ArchiveError> {
    let facts = archive.facts()?;
    let name = archive.name();
    let (mut made, mut without) = (Vec::new(), Vec::new());
    for c in figures.comparisons() {
        match claim(&name, &facts, figures, c) {
            Some(claim) => made.push(claim),
            None => without.push(format!(
                "no claim on {} of {} over {}: {}",
                in_words(c.metric, c.level.as_deref()),
                c.other,
                c.base,
                c.no_interval.as_deref().unwrap_or("a figure is missing")
            )),
        }
    }
    Ok((made, without))
}

fn claim(name: &str, facts: &Facts, figures: &Figures, c: &Comparison) -> Option<Claim> {
    let interval = figures.interval(c)?;
    let ids = [
        c.arm_figure(&c.other),
        c.arm_figure(&c.base),
        format!("{}/ratio", c.prefix),
    ];
    let [other, base, ratio] = &ids;
    let ratio_figure = figures.get(ratio)?;
    let none_shown = match difference(interval) {
        Difference::NotShown => ": no difference is shown",
        Difference::Above | Difference::Below => "",
    };
    let title = figures.interval_title();
    let percent = title.split('%').next().unwrap_or_default();
    let what = in_words(c.metric, c.level.as_deref());
    let mut initial = what.chars();
    let what: String = initial
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(initial)
        .collect();
    let sentence = format!(
        "{what} of {}: {}, against {} of {}; {} times as much by {} pairs of sessions ({}, {title} {} to {}{none_shown}), on \
         {}, {}, archive `{name}`.",
        label(facts, &c.other),
        amount(figures.get(other)?)?,
        amount(figures.get(base)?)?,
        label(facts, &c.base),
        three_digits(ratio_figure.value()?),
        c.pairs,
        word(ratio_figure),
        three_digits(interval.low),
        three_digits(interval.high),
        on_what(facts, c),
        facts.host.utc.split('T').next().unwrap_or_default(),
    );
    let scaled = |id: &String| match figures.get(id).map(Published::unit) {
        Some(crate::derive::Unit::Bytes) => format!("{id}@MiB"),
        _ => id.clone(),
    };
    // The digits of a name are no numbers, but a level's are.
    let level = c.level.as_deref().map(|level| format!("={}", &level[1..]));
    let mut listed: Vec<String> = level.into_iter().collect();
    listed.extend([
        scaled(other),
        scaled(base),
        ratio.clone(),
        format!("={}", c.pairs),
    ]);
    listed.push(format!("={percent}"));
    listed.push(format!("{}/{{ratio_low,ratio_high}}", c.prefix));
    Some(Claim {
        sentence,
        figures: listed,
        archive: name.to_owned(),
    })
}

/// `14.1 tok/s (CALCULATED)`.
fn amount(figure: &Published) -> Option<String> {
    let unit = unit_text(figure.unit());
    let value = number(figure.value()?, figure.unit());
    Some(format!("{value} {unit} ({})", word(figure)))
}

fn word(figure: &Published) -> &'static str {
    figure.label().word()
}

fn label(facts: &Facts, arm: &str) -> String {
    let session = facts.sessions.iter().find(|s| s.planned.arm == arm);
    let label = session.map_or(arm, |s| s.launch.label.as_str());
    if shown(label).is_empty() {
        label.to_owned()
    } else {
        // As code: the digits of a name are no claims.
        format!("`{label}`")
    }
}

/// Models and machine, as code: digits in their names are no claims.
fn on_what(facts: &Facts, c: &Comparison) -> String {
    let sessions = facts.sessions.iter();
    let compared = sessions.filter(|s| [&c.base, &c.other].contains(&&s.planned.arm));
    let models: BTreeSet<&str> = compared
        .flat_map(|s| &s.launch.models)
        .map(|m| m.path.rsplit('/').next().unwrap_or(&m.path))
        .collect();
    let models: Vec<&str> = models.into_iter().collect();
    let models = match models.len() {
        0 => String::new(),
        _ => format!("`{}`, ", models.join(", ")),
    };
    let host = &facts.host;
    let cpus = host
        .logical_cpus
        .map_or_else(|| "?".to_owned(), |n| n.to_string());
    let cpu = host
        .cpu_model
        .as_deref()
        .unwrap_or("a processor without a name");
    format!("{models}`{cpu}, {cpus} CPUs`")
}
