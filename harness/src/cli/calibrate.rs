//! `palindrome calibrate --simulate`.

use serde_json::json;

use super::args::CalibrateArgs;
use super::{Exit, Failure};
use crate::derive::three_digits;
use crate::simulate::{Cell, Design, Noise, Rate, Setup, cell, lines};
use crate::stats::minimum_detectable_effect;

/// Sizes of studies that are simulated, in quartets.
const QUARTETS: [u32; 4] = [2, 3, 4, 6];

/// Prints false positives, coverage and power by noise, design and size.
pub fn calibrate(args: &CalibrateArgs) -> Result<Exit, Failure> {
    if !args.simulate {
        return Err(Failure::new(
            Exit::Usage,
            "say `--simulate`: the figures are of simulated studies (`palindrome aa` measures this machine)",
        ));
    }
    let setup = setup(args)?;
    let noises = args.noise.map_or(Noise::ALL.to_vec(), |n| vec![n]);
    let designs = args.design.map_or(Design::ALL.to_vec(), |d| vec![d]);
    let quartets = if args.quartets.is_empty() {
        QUARTETS.to_vec()
    } else {
        args.quartets.clone()
    };
    let mut lines = lines(&noises, &designs, &quartets).peekable();
    if lines.peek().is_none() {
        let message = "no design is of that size: looks need 3 quartets or more";
        return Err(Failure::new(Exit::Usage, message));
    }
    if !args.json {
        print!("{}", head(&setup));
    }
    let mut cells: Vec<Cell> = Vec::new();
    for (noise, design, quartets) in lines {
        if !args.json && cells.last().is_none_or(|last| last.noise != noise) {
            println!("\n{}: {}", noise.name(), noise.explained());
        }
        let cell = cell(&setup, noise, design, quartets);
        if !args.json {
            println!("{}", line(&cell));
        }
        cells.push(cell);
    }
    if args.json {
        println!(
            "{}",
            json!({ "label": "SIMULATED", "setup": setup, "cells": cells })
        );
    } else {
        println!("\n{WORDS}");
    }
    Ok(Exit::Done)
}

const WORDS: &str = "False positives: studies of two equal arms that show a difference (nominal 5%). Coverage: intervals that hold the \
                     effect (nominal 95%). Power: studies that show the effect, on its side. Each with the standard error of \
                     the simulation. Looks are after a third and two thirds of the quartets. WRONG designs are there as a \
                     contrast: no study here runs that way.";

fn setup(args: &CalibrateArgs) -> Result<Setup, Failure> {
    let refuse = |what: String| Err(Failure::new(Exit::Usage, what));
    if args.studies == 0 {
        return refuse("--studies 0 simulates nothing: give 1 or more (4000 is usual)".into());
    }
    if !(args.spread > 0.0 && args.spread < 1.0) {
        return refuse(format!("--spread {} is no share: 0.01 is 1%", args.spread));
    }
    // What three quartets detect 4 times in 5.
    let detectable = minimum_detectable_effect(6).unwrap_or(1.5) * libm::log1p(args.spread);
    let effect = args.effect.unwrap_or_else(|| libm::expm1(detectable));
    if !(effect > -1.0 && effect != 0.0 && effect.is_finite()) {
        return refuse(format!(
            "--effect {effect} is no effect: 0.05 is a ratio of 1.05, -0.05 one of 0.95"
        ));
    }
    if let Some(margin) = args.margin
        && !(margin > 0.0 && margin < 1.0)
    {
        return refuse(format!("--margin {margin} is no share: 0.05 is 5%"));
    }
    if let Some(quartets) = args.quartets.iter().find(|q| !(2..=1000).contains(*q)) {
        return refuse(format!(
            "--quartets {quartets}: give 2 to 1000; one quartet has no interval"
        ));
    }
    Ok(Setup {
        seed: args.seed,
        studies: args.studies,
        effect,
        spread: args.spread,
        margin: args.margin,
    })
}

fn head(setup: &Setup) -> String {
    let gate = match setup.margin {
        Some(margin) => format!("   gate at {margin}: pass, regression, open"),
        None => String::new(),
    };
    format!(
        "SIMULATED: {} studies a line without an effect and as many with a ratio of {:.4}; pairs of sessions differ by \
         {}%; seed {}\n\n{:22}{:>9}   {:>15}   {:>15}   {:>15}{gate}\n",
        setup.studies,
        1.0 + setup.effect,
        three_digits(setup.spread * 100.0),
        setup.seed,
        "design",
        "quartets",
        "false positives",
        "coverage",
        "power",
    )
}

fn line(cell: &Cell) -> String {
    let name = if cell.wrong {
        format!("WRONG {}", cell.design.name())
    } else {
        cell.design.name().to_owned()
    };
    let rates = [&cell.false_positives, &cell.coverage, &cell.power];
    let rates = rates.map(|rate| format!("   {:>15}", share(rate))).concat();
    let gate = cell.gate.as_ref().map_or_else(String::new, |gate| {
        let rates = [&gate.pass, &gate.regression, &gate.inconclusive];
        rates.map(|rate| format!("   {}", share(rate))).concat()
    });
    format!("  {name:20}{:>9}{rates}{gate}", cell.quartets)
}

/// `5.12 ± 0.35% S`.
fn share(rate: &Rate) -> String {
    format!(
        "{:.2} ± {:.2}% {}",
        rate.value() * 100.0,
        rate.error() * 100.0,
        rate.share.label().letter()
    )
}
