//! How often a design errs and what it sees, over many simulated studies.

use serde::Serialize;

use super::one::{judged, levels};
use super::{Design, Noise, Random};
use crate::derive::{AnyFigure as _, Figure, Published, Unit};
use crate::stats::{Decision, Difference, against_margin, difference};

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setup {
    /// Seed of everything.
    pub seed: u64,
    /// Studies without an effect, and as many with it, for each line.
    pub studies: u32,
    /// B's ratio over A less 1, where there is an effect.
    pub effect: f64,
    /// How much a pair of sessions deviates, as a share.
    pub spread: f64,
    /// Largest slowdown that passes, for a rate; no gate if absent.
    pub margin: Option<f64>,
}

/// A share of simulated studies with its Monte-Carlo standard error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// The share, as a SIMULATED figure.
    pub share: Published,
    /// Its standard error, as one too.
    pub standard_error: Published,
}

impl Rate {
    fn of(id: &str, hits: u32, setup: &Setup) -> Self {
        let n = f64::from(setup.studies);
        let share = f64::from(hits) / n;
        let run = format!("seed {}, {} studies", setup.seed, setup.studies);
        let figure = |id: String, value| {
            let figure = Figure::simulated(id, Unit::Probability, Some(value), &run);
            figure.published().clone()
        };
        Self {
            share: figure(id.to_owned(), share),
            standard_error: figure(
                format!("{id}/standard_error"),
                (share * (1.0 - share) / n).sqrt(),
            ),
        }
    }

    /// The share.
    pub fn value(&self) -> f64 {
        self.share.value().unwrap_or(f64::NAN)
    }

    /// Its standard error.
    pub fn error(&self) -> f64 {
        self.standard_error.value().unwrap_or(f64::NAN)
    }
}

/// One line: a design of a size under a noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The noise.
    pub noise: Noise,
    /// The design.
    pub design: Design,
    /// Whether it is there as a contrast only.
    pub wrong: bool,
    /// Quartets planned.
    pub quartets: u32,
    /// Studies without an effect that show one.
    pub false_positives: Rate,
    /// Studies whose interval holds the effect.
    pub coverage: Rate,
    /// Studies with the effect that show it, on its side.
    pub power: Rate,
    /// Of studies with the effect: what the margin's gate says; absent without a margin.
    pub gate: Option<Gate>,
}

/// Outcomes of the gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// Slower by less than the margin.
    pub pass: Rate,
    /// Slower by more.
    pub regression: Rate,
    /// Not settled.
    pub inconclusive: Rate,
}

/// Simulates one line. Its random numbers depend on the seed and on what the line is, not on which
/// others are asked for.
pub fn cell(setup: &Setup, noise: Noise, design: Design, quartets: u32) -> Cell {
    let scope = format!("simulated/{}/{}/{quartets}", noise.name(), design.name());
    // FNV-1a over the line's name.
    let own = scope.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut random = Random::new(setup.seed ^ own);
    let levels = levels(design, quartets);
    let deviation = libm::log1p(setup.spread);
    let effect = libm::log1p(setup.effect);
    let side = if effect > 0.0 {
        Difference::Above
    } else {
        Difference::Below
    };
    let (mut false_positives, mut covered, mut found) = (0, 0, 0);
    let (mut pass, mut regression, mut inconclusive) = (0, 0, 0);
    for _ in 0..setup.studies {
        let null = judged(design, &levels, noise, (0.0, deviation), &mut random);
        if null.is_some_and(|j| difference(j.ratio) != Difference::NotShown) {
            false_positives += 1;
        }
        let Some(real) = judged(design, &levels, noise, (effect, deviation), &mut random) else {
            continue;
        };
        let truth = 1.0 + setup.effect;
        if real.ratio.low <= truth && truth <= real.ratio.high {
            covered += 1;
        }
        if difference(real.ratio) == side {
            found += 1;
        }
        if let Some(margin) = setup.margin {
            match against_margin(real.ratio, margin, true) {
                Decision::Pass => pass += 1,
                Decision::Regression => regression += 1,
                Decision::Inconclusive => inconclusive += 1,
            }
        }
    }
    let rate = |name: &str, hits| Rate::of(&format!("{scope}/{name}"), hits, setup);
    Cell {
        noise,
        design,
        wrong: design.is_wrong(),
        quartets,
        false_positives: rate("false_positives", false_positives),
        coverage: rate("coverage", covered),
        power: rate("power", found),
        gate: setup.margin.map(|_| Gate {
            pass: rate("pass", pass),
            regression: rate("regression", regression),
            inconclusive: rate("inconclusive", inconclusive),
        }),
    }
}

/// The lines of a table: every noise with every design and size that there is such a design of.
pub fn lines(
    noises: &[Noise],
    designs: &[Design],
    quartets: &[u32],
) -> impl Iterator<Item = (Noise, Design, u32)> {
    let mut all = Vec::new();
    for &noise in noises {
        for &design in designs {
            let sizes = quartets.iter().filter(|quartets| design.fits(**quartets));
            all.extend(sizes.map(|quartets| (noise, design, *quartets)));
        }
    }
    all.into_iter()
}
