//! Energy of a session: counters that rose, and power over time.

use super::Formula;
use super::book::Book;
use super::figure::{AnyFigure, Calculated, Fact, Figure, Measured, Unit};
use super::noise::Window;
use super::request::RequestFigures;
use crate::archive::SessionFacts;
use crate::host::HostSample;

/// Drivers whose counters are of a GPU. Other ones may count the whole board, or what RAPL counts.
const GPUS: [&str; 5] = ["amdgpu", "i915", "xe", "nouveau", "radeon"];

/// A session's energy and what it was spent on; values are absent where the host shows none.
pub(super) struct SessionEnergy {
    total: Figure<Calculated>,
    tokens: Figure<Calculated>,
}

/// Whether a device's energy is part of the sum: packages, their DRAM and GPUs. A platform's count
/// (`psys`) holds the others.
fn is_part(device: &str) -> bool {
    let driver = device.split(' ').next().unwrap_or(device);
    device.starts_with("package") || device.starts_with("dram") || GPUS.contains(&driver)
}

/// Publishes joules by device, their sum, and joules a generated token, from the last sample before
/// the first request to the first sample after the last answer, warm-ups included. Absent for
/// sessions of archives before energy was sampled.
pub(super) fn session_energy(
    book: &mut Book,
    session: &SessionFacts,
    requests: &[RequestFigures],
) -> Option<SessionEnergy> {
    session.readback.as_ref()?;
    let scope = format!("session/{}", session.name());
    let file = format!("sessions/{}/host.jsonl", session.name());
    let samples = Window::of(session).map_or(&[][..], |w| w.samples(&session.samples));
    let counters = counters(book, &scope, &file, samples);
    let powers = powers(book, &scope, &file, samples);
    let parts = counters
        .iter()
        .map(|(device, figure)| (device, figure as &dyn AnyFigure));
    let parts = parts.chain(
        powers
            .iter()
            .map(|(device, figure)| (device, figure as &dyn AnyFigure)),
    );
    // Newer Intel GPUs count the card, and the package within it.
    let within_a_card = |device: &str| {
        let card = device.strip_suffix(" pkg").map(|at| format!("{at} card"));
        card.is_some_and(|card| counters.iter().any(|(name, _)| *name == card))
    };
    let parts: Vec<&dyn AnyFigure> = parts
        .filter(|(device, _)| is_part(device) && !within_a_card(device))
        .map(|(_, figure)| figure)
        .collect();
    let id = |name: &str| format!("{scope}/{name}");
    let total = book.add(if parts.is_empty() {
        let none = [Fact::new(&file, "*/energy", None)];
        Figure::over_column(id("energy"), Unit::Joules, &Formula::Sum, &none)
    } else {
        Figure::by(id("energy"), Unit::Joules, &Formula::Sum, &parts)
    });
    let generated: Vec<&dyn AnyFigure> = requests.iter().map(|r| &r.generated as _).collect();
    let tokens = book.add(Figure::by(
        id("energy_tokens"),
        Unit::Tokens,
        &Formula::Sum,
        &generated,
    ));
    book.add(Figure::by(
        id("energy_per_token"),
        Unit::JoulesPerToken,
        &Formula::Quotient,
        &[&total, &tokens],
    ));
    Some(SessionEnergy { total, tokens })
}

/// Publishes an arm's joules a generated token: sum over sum.
pub(super) fn arm_energy(book: &mut Book, arm: &str, sessions: &[&SessionEnergy]) {
    if sessions.is_empty() {
        return;
    }
    let totals = sessions.iter().map(|s| &s.total as &dyn AnyFigure);
    let tokens = sessions.iter().map(|s| &s.tokens as &dyn AnyFigure);
    let inputs: Vec<&dyn AnyFigure> = totals.clone().chain(tokens).collect();
    book.add(Figure::by(
        format!("arm/{arm}/energy_per_token"),
        Unit::JoulesPerToken,
        &Formula::SumOverSum,
        &inputs,
    ));
    let totals: Vec<&dyn AnyFigure> = totals.collect();
    let id = format!("arm/{arm}/energy");
    book.add(Figure::by(id, Unit::Joules, &Formula::Median, &totals));
}

/// A device's name as part of an id.
fn slug(device: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    };
    device.chars().map(plain).collect()
}

fn devices<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<String> = names.cloned().collect();
    names.sort();
    names.dedup();
    names
}

fn counters(
    book: &mut Book,
    scope: &str,
    file: &str,
    samples: &[HostSample],
) -> Vec<(String, Figure<Measured>)> {
    let all = samples.iter().flat_map(|s| s.energy.iter().flatten());
    let figure = |device: String| {
        let column = samples.iter().map(|s| {
            let counter = s.energy.iter().flatten().find(|c| c.device == device)?;
            Some((counter.microjoules, counter.range_microjoules))
        });
        let column: Option<Vec<(u64, Option<u64>)>> = column.collect();
        let joules = column.and_then(|c| rise(&c)).map(|uj| uj as f64 / 1e6);
        let fact = Fact::new(file, &format!("*/energy/{device}/microjoules"), joules);
        let id = format!("{scope}/energy/{}", slug(&device));
        let figure = book.add(Figure::risen(id, Unit::Joules, fact));
        (device, figure)
    };
    devices(all.map(|c| &c.device))
        .into_iter()
        .map(figure)
        .collect()
}

/// How much a counter rose over readings in order, in its own unit. At its range it starts from 0
/// again; one that falls and has no range tells nothing.
fn rise(readings: &[(u64, Option<u64>)]) -> Option<u64> {
    let mut sum = 0;
    for pair in readings.windows(2) {
        let ((before, _), (now, range)) = (pair[0], pair[1]);
        sum += match now.checked_sub(before) {
            Some(step) => step,
            None => range?.checked_sub(before)? + now,
        };
    }
    (readings.len() >= 2).then_some(sum)
}

fn powers(
    book: &mut Book,
    scope: &str,
    file: &str,
    samples: &[HostSample],
) -> Vec<(String, Figure<Calculated>)> {
    let all = samples.iter().flat_map(|s| s.power.iter().flatten());
    let figure = |device: String| {
        let mut column = Vec::new();
        for sample in samples {
            let reading = sample.power.iter().flatten().find(|p| p.device == device);
            if let Some(reading) = reading {
                let field = format!("*/power/{device}/microwatts");
                column.push(Fact::new(file, "*/ns", Some(sample.ns as f64)));
                column.push(Fact::new(file, &field, Some(reading.microwatts as f64)));
            }
        }
        let id = format!("{scope}/energy/{}", slug(&device));
        let formula = Formula::PowerOverTime;
        let figure = book.add(Figure::over_column(id, Unit::Joules, &formula, &column));
        (device, figure)
    };
    devices(all.map(|p| &p.device))
        .into_iter()
        .map(figure)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_starts_again_at_its_range() {
        let range = Some(1000);
        assert_eq!(rise(&[(900, range), (950, range), (20, range)]), Some(120));
        assert_eq!(rise(&[(900, None), (20, None)]), None);
        assert_eq!(rise(&[(900, range)]), None);
        assert_eq!(rise(&[(5, None), (5, None)]), Some(0));
        // A counter beyond what it says is its range says nothing.
        assert_eq!(rise(&[(1900, range), (20, range)]), None);
    }

    #[test]
    fn the_sum_is_of_what_does_not_hold_one_another() {
        for (device, part) in [
            ("package-0", true),
            ("dram-0", true),
            ("psys", false),
            ("amdgpu 0000:03:00.0 PPT", true),
            ("amd_energy", false),
            ("power_meter ACPI000D:00", false),
        ] {
            assert_eq!(is_part(device), part, "{device}");
        }
        assert_eq!(slug("amdgpu 0000:03:00.0 PPT"), "amdgpu-0000-03-00-0-PPT");
    }
}
