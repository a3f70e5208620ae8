//! Numbers and marks for people.

use crate::derive::{Figures, Published, Unit, three_digits};

/// What stands where there is no value.
pub(super) const MISSING: &str = "–";

/// A figure's value with unit and label letter, such as `71.3 tok/s C`; a dash when absent.
pub(crate) fn with_unit(figure: Option<&Published>) -> String {
    match figure.and_then(|f| f.value().map(|v| (f, v))) {
        Some((f, value)) => {
            let unit = unit_text(f.unit());
            let space = if unit.is_empty() { "" } else { " " };
            format!(
                "{}{space}{unit} {}",
                number(value, f.unit()),
                f.label().letter()
            )
        }
        None => MISSING.into(),
    }
}

/// Value and label letter without the unit, for columns whose head names it.
pub(crate) fn bare(figure: Option<&Published>) -> String {
    match figure.and_then(|f| f.value().map(|v| (f, v))) {
        Some((f, value)) => format!("{} {}", number(value, f.unit()), f.label().letter()),
        None => MISSING.into(),
    }
}

/// A value in the unit's usual scale.
pub(crate) fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => three_digits(value / (1024.0 * 1024.0)),
        Unit::Tokens => format!("{value:.0}"),
        Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        _ => three_digits(value),
    }
}

/// How a unit is written.
pub(crate) fn unit_text(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "s",
        Unit::Milliseconds => "ms",
        Unit::Tokens => "tokens",
        Unit::TokensPerSecond => "tok/s",
        Unit::RequestsPerSecond => "req/s",
        Unit::Bytes => "MiB",
        Unit::Joules => "J",
        Unit::JoulesPerToken => "J/token",
        Unit::PairDeviations => "deviations",
        Unit::Count | Unit::Ratio | Unit::LogRatio | Unit::Probability => "",
    }
}

/// `1.05 to 1.21 C`, or a dash.
pub(super) fn range(figures: &Figures, prefix: &str) -> String {
    let (low, high) = (
        figures.get(&format!("{prefix}/ratio_low")),
        figures.get(&format!("{prefix}/ratio_high")),
    );
    match (
        low.and_then(Published::value),
        high.and_then(Published::value),
    ) {
        (Some(l), Some(h)) => format!("{} to {} C", three_digits(l), three_digits(h)),
        _ => MISSING.into(),
    }
}
