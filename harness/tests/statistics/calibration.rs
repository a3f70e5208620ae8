//! How often verdicts err, held by simulation: seeded, so every run gives the same figures.

use palindrome_harness::derive::Label;
use palindrome_harness::simulate::{Cell, Design, Noise, Setup, cell, lines};

/// 4000 studies: the Monte-Carlo standard error of 5% is 0.34%.
fn setup() -> Setup {
    Setup {
        seed: 1,
        studies: 4000,
        effect: 0.0155,
        spread: 0.01,
        margin: None,
    }
}

fn default_design(noise: Noise) -> Cell {
    cell(&setup(), noise, Design::Mirrored, 3)
}

#[track_caller]
fn within(found: f64, (low, high): (f64, f64), what: &str) {
    assert!(
        (low..=high).contains(&found),
        "{what}: {found} is outside {low} to {high}"
    );
}

#[test]
fn where_theory_holds_the_default_design_errs_as_often_as_it_says() {
    // Normal sessions, with and without a drift that mirroring cancels.
    for noise in [Noise::Gaussian, Noise::LinearDrift] {
        let found = default_design(noise);
        within(found.false_positives.value(), (0.03, 0.07), noise.name());
        within(found.coverage.value(), (0.93, 0.97), noise.name());
        // The effect is the one that 3 quartets are planned to detect 4 times in 5.
        within(found.power.value(), (0.77, 0.84), noise.name());
        assert_eq!(found.power.share.label(), Label::Simulated);
        assert_eq!(found.power.share.inputs(), ["seed 1, 4000 studies"]);
    }
}

#[test]
fn where_theory_does_not_hold_it_errs_as_measured() {
    // Rare large noise makes the interval cautious and costs power; noise that lasts from session to
    // session makes it a little too short.
    for (noise, false_positives, power) in [
        (Noise::HeavyTails, 0.0415, 0.86),
        (Noise::Spikes, 0.0362, 0.59),
        (Noise::SaturatingDrift, 0.0367, 0.73),
        (Noise::Ar1, 0.0567, 0.97),
        (Noise::Neighbour, 0.0455, 0.55),
    ] {
        let found = default_design(noise);
        let near = |value: f64, by: f64| (value - by, value + by);
        within(
            found.false_positives.value(),
            near(false_positives, 0.004),
            noise.name(),
        );
        within(found.false_positives.value(), (0.03, 0.07), noise.name());
        within(
            found.coverage.value(),
            near(1.0 - false_positives, 0.007),
            noise.name(),
        );
        within(found.coverage.value(), (0.93, 0.97), noise.name());
        within(found.power.value(), near(power, 0.03), noise.name());
    }
}

#[test]
fn designs_that_are_labelled_wrong_are() {
    let errs = |noise, design, quartets| {
        let found = cell(&setup(), noise, design, quartets);
        assert!(found.wrong);
        found.false_positives.value()
    };
    // A B A B and A A B B take a drift for an effect; mirrored order does not.
    assert!(errs(Noise::LinearDrift, Design::Abab, 3) > 0.7);
    assert!(errs(Noise::LinearDrift, Design::Aabb, 3) > 0.99);
    assert!(errs(Noise::Ar1, Design::Aabb, 3) > 0.15);
    assert!(errs(Noise::SaturatingDrift, Design::Abab, 3) > 0.10);
    // Looking at a 95% interval three times is not a test at 5%.
    assert!(errs(Noise::Gaussian, Design::Peeking, 6) > 0.09);
}

#[test]
fn planned_looks_together_cost_what_one_test_does() {
    for design in [Design::LooksOBrienFleming, Design::LooksPocock] {
        let found = cell(&setup(), Noise::Gaussian, design, 6);
        within(found.false_positives.value(), (0.03, 0.07), design.name());
        // Intervals of looks hold at every look at once, so at the last they hold more often.
        within(found.coverage.value(), (0.95, 0.99), design.name());
    }
}

#[test]
fn a_line_is_the_same_whatever_else_is_asked_for() {
    let few = Setup {
        studies: 50,
        ..setup()
    };
    let alone = cell(&few, Noise::Spikes, Design::Mirrored, 4);
    let noises = [Noise::Gaussian, Noise::Spikes];
    let all: Vec<_> = lines(&noises, &[Design::Mirrored], &[3, 4])
        .map(|(noise, design, quartets)| cell(&few, noise, design, quartets))
        .collect();
    assert_eq!(all.len(), 4);
    assert_eq!(all[3], alone);
    assert_eq!(lines(&noises, &[Design::LooksPocock], &[2]).count(), 0);
    let other = Setup { seed: 2, ..few };
    assert_ne!(cell(&other, Noise::Spikes, Design::Mirrored, 4), alone);
}
