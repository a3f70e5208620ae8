//! A figure: a value, its unit, its label and where it comes from. The label is in the type.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::Formula;

/// How a figure came to be, the same four words everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Label {
    /// Read off a clock or counter in this study.
    Measured,
    /// A named formula over other figures.
    Calculated,
    /// A model or replay stood in for the machine.
    Simulated,
    /// Taken from elsewhere, with its source.
    Assumed,
}

impl Label {
    /// As archives and sentences write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Measured => "MEASURED",
            Self::Calculated => "CALCULATED",
            Self::Simulated => "SIMULATED",
            Self::Assumed => "ASSUMED",
        }
    }

    /// The letter that marks it in tables and charts.
    pub fn letter(self) -> char {
        match self {
            Self::Measured => 'M',
            Self::Calculated => 'C',
            Self::Simulated => 'S',
            Self::Assumed => 'A',
        }
    }
}

/// Units of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Tokens.
    Tokens,
    /// Tokens a second.
    TokensPerSecond,
    /// Requests a second.
    RequestsPerSecond,
    /// Bytes.
    Bytes,
    /// Joules.
    Joules,
    /// Joules a token.
    JoulesPerToken,
    /// A plain count.
    Count,
    /// Second arm over first arm, or a share; no unit.
    Ratio,
    /// Natural logarithm of a ratio.
    LogRatio,
    /// A probability.
    Probability,
    /// Multiples of the standard deviation of the pairs' log-ratios.
    PairDeviations,
}

/// What is published of a figure: `figures.json` holds these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Unique in the archive, such as `session/03-B/decode_rate`.
    id: String,
    /// Absent when it could not be had; never 0 for missing.
    value: Option<f64>,
    unit: Unit,
    label: Label,
    /// Name of the formula, or `reading` / `interval` of clocks and counters.
    formula: String,
    /// Figure ids, or fact references `file#field` inside the archive.
    inputs: Vec<String>,
}

impl Published {
    /// Unique id.
    pub fn id(&self) -> &str {
        &self.id
    }
    /// The value in its unit.
    pub fn value(&self) -> Option<f64> {
        self.value
    }
    /// Its unit.
    pub fn unit(&self) -> Unit {
        self.unit
    }
    /// Its label.
    pub fn label(&self) -> Label {
        self.label
    }
    /// Its formula's id.
    pub fn formula(&self) -> &str {
        &self.formula
    }
    /// What it was computed from.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }
    /// This figure over another, which may be of another archive; `places` name the archives.
    #[must_use]
    pub fn over(&self, other: &Self, places: [&str; 2], id: String) -> Self {
        let named = |figure: &Self, place: &str| Figure::<Calculated> {
            published: Self {
                id: format!("{place}#{}", figure.id),
                ..figure.clone()
            },
            label: PhantomData,
        };
        let (a, b) = (named(self, places[0]), named(other, places[1]));
        Figure::by(id, Unit::Ratio, &Formula::Quotient, &[&a, &b]).published
    }
    /// Equal to the last bit, labels and provenance included.
    pub fn same_bits(&self, other: &Self) -> bool {
        self.value.map(f64::to_bits) == other.value.map(f64::to_bits)
            && (&self.id, self.unit, self.label, &self.formula, &self.inputs)
                == (
                    &other.id,
                    other.unit,
                    other.label,
                    &other.formula,
                    &other.inputs,
                )
    }
}

/// A number read from a raw fact, with its reference. Only `derive` makes them, from typed facts.
#[derive(Clone, Debug)]
pub struct Fact {
    reference: String,
    value: Option<f64>,
}

impl Fact {
    pub(super) fn new(file: &str, field: &str, value: Option<f64>) -> Self {
        Self {
            reference: format!("{file}#{field}"),
            value,
        }
    }
}

/// Marker of [`Label::Measured`].
#[derive(Clone, Copy, Debug)]
pub struct Measured;
/// Marker of [`Label::Assumed`].
#[derive(Clone, Copy, Debug)]
pub struct Assumed;
/// Marker of [`Label::Simulated`].
#[derive(Clone, Copy, Debug)]
pub struct Simulated;
/// Marker of [`Label::Calculated`].
#[derive(Clone, Copy, Debug)]
pub struct Calculated;

/// A figure whose label is its type.
#[derive(Clone, Debug)]
pub struct Figure<L> {
    published: Published,
    label: PhantomData<L>,
}

impl<L> Figure<L> {
    fn make(
        id: String,
        value: Option<f64>,
        unit: Unit,
        label: Label,
        formula: &str,
        inputs: Vec<String>,
    ) -> Self {
        let value = value.filter(|v| v.is_finite());
        let published = Published {
            id,
            value,
            unit,
            label,
            formula: formula.into(),
            inputs,
        };
        Self {
            published,
            label: PhantomData,
        }
    }
}

impl Figure<Measured> {
    /// A counter as it was read.
    pub fn reading(id: String, unit: Unit, fact: Fact) -> Self {
        Self::make(
            id,
            fact.value,
            unit,
            Label::Measured,
            "reading",
            vec![fact.reference],
        )
    }

    /// How many of some facts are as they are wanted, such as hashes that are equal two by two.
    pub fn counted(id: String, unit: Unit, count: Option<f64>, facts: &[Fact]) -> Self {
        Self::make(
            id,
            count,
            unit,
            Label::Measured,
            "counted",
            facts.iter().map(|f| f.reference.clone()).collect(),
        )
    }

    /// How much a counter rose over its readings in order, where it starts again at its range.
    pub fn risen(id: String, unit: Unit, fact: Fact) -> Self {
        let inputs = vec![fact.reference];
        Self::make(
            id,
            fact.value,
            unit,
            Label::Measured,
            "counter-rise",
            inputs,
        )
    }

    /// A stopwatch: two readings of one clock in nanoseconds, as seconds.
    pub fn interval(id: String, from: Fact, to: Fact) -> Self {
        let value = from.value.zip(to.value).map(|(from, to)| (to - from) / 1e9);
        Self::make(
            id,
            value,
            Unit::Seconds,
            Label::Measured,
            "interval",
            vec![from.reference, to.reference],
        )
    }
}

impl Figure<Assumed> {
    /// A value that the record holds by assumption, because the server did not say.
    pub fn assumed(id: String, unit: Unit, fact: Fact) -> Self {
        Self::make(
            id,
            fact.value,
            unit,
            Label::Assumed,
            "assumed",
            vec![fact.reference],
        )
    }
}

impl Figure<Assumed> {
    /// A value that the study declares before its first session: no reading of anything.
    pub fn declared(id: String, unit: Unit, fact: Fact) -> Self {
        Self::make(
            id,
            fact.value,
            unit,
            Label::Assumed,
            "declared",
            vec![fact.reference],
        )
    }
}

impl Figure<Simulated> {
    /// A share or count of simulated studies; `run` says which: seed and number.
    pub fn simulated(id: String, unit: Unit, value: Option<f64>, run: &str) -> Self {
        Self::make(
            id,
            value,
            unit,
            Label::Simulated,
            "simulated",
            vec![run.to_owned()],
        )
    }
}

impl Figure<Calculated> {
    /// A named formula over other figures; absent when any of them is.
    pub fn by(id: String, unit: Unit, formula: &Formula, inputs: &[&dyn AnyFigure]) -> Self {
        let values: Option<Vec<f64>> = inputs.iter().map(|f| f.published().value).collect();
        let value = values.and_then(|v| formula.apply(&v));
        let references = inputs.iter().map(|f| f.published().id.clone()).collect();
        Self::make(
            id,
            value,
            unit,
            Label::Calculated,
            &formula.id(),
            references,
        )
    }

    /// A formula over a column of facts (telemetry); lines that lack the fact are left out.
    pub fn over_column(id: String, unit: Unit, formula: &Formula, column: &[Fact]) -> Self {
        let values: Vec<f64> = column.iter().filter_map(|f| f.value).collect();
        let mut references: Vec<String> = column.iter().map(|f| f.reference.clone()).collect();
        references.dedup();
        Self::make(
            id,
            formula.apply(&values),
            unit,
            Label::Calculated,
            &formula.id(),
            references,
        )
    }
}

/// A figure of any label, as an input or for publication.
pub trait AnyFigure {
    /// What is published of it.
    fn published(&self) -> &Published;
}

impl<L> AnyFigure for Figure<L> {
    fn published(&self) -> &Published {
        &self.published
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(value: Option<f64>) -> Figure<Measured> {
        Figure::reading("x".into(), Unit::Tokens, Fact::new("f.json", "n", value))
    }

    #[test]
    fn missing_stays_missing_through_a_formula() {
        let (a, b) = (reading(Some(3.0)), reading(None));
        let id = || "y".to_string();
        let difference = Figure::by(id(), Unit::Tokens, &Formula::Difference, &[&a, &b]);
        assert_eq!(difference.published().value(), None);
        let difference = Figure::by(id(), Unit::Tokens, &Formula::Difference, &[&a, &a]);
        assert_eq!(difference.published().value(), Some(0.0));
        assert_eq!(difference.published().label(), Label::Calculated);
    }

    #[test]
    fn not_a_number_is_missing_not_published() {
        assert_eq!(reading(Some(f64::NAN)).published().value(), None);
    }
}
