//! Bounds of percentiles over sessions. A session's worst request stands for it: then 9 sessions in
//! 10 keep all their requests below the bound of p90.

use super::Formula;
use super::book::Book;
use super::figure::{AnyFigure, Calculated, Figure, Unit};
use super::request::RequestFigures;
use super::session::SessionFigures;
use crate::study::{Level, Plan};

/// The percentiles that are shown, over requests and as bounds over sessions.
pub const PERCENTS: [u8; 3] = [90, 95, 99];

type Pick = fn(&RequestFigures) -> &dyn AnyFigure;

/// The times that are bounded, by the last part of their ids.
pub const WORST: [&str; 2] = ["worst_ttft", "worst_client_wall"];

/// Publishes each session's worst times and the bounds of an arm over its scored sessions, level by
/// level where there are levels.
pub(super) fn bounds(book: &mut Book, plan: &Plan, arm: &str, sessions: &[&SessionFigures<'_>]) {
    for level in plan.levels() {
        bounds_at(book, &level, arm, sessions);
    }
}

fn bounds_at(book: &mut Book, level: &Level, arm: &str, sessions: &[&SessionFigures<'_>]) {
    let picks: [Pick; 2] = [|r| &r.ttft, |r| &r.wall];
    let scope = level.scope(&format!("arm/{arm}"));
    for (name, pick) in WORST.into_iter().zip(picks) {
        let worst: Vec<Figure<Calculated>> = sessions
            .iter()
            .map(|session| {
                let id = format!("{}/{name}", level.scope(&session.scope));
                let inputs: Vec<&dyn AnyFigure> = session.at(level).map(pick).collect();
                book.add(Figure::by(id, Unit::Seconds, &Formula::Largest, &inputs))
            })
            .collect();
        let inputs: Vec<&dyn AnyFigure> = worst.iter().map(|f| f as &dyn AnyFigure).collect();
        for percent in PERCENTS {
            book.add(Figure::by(
                format!("{scope}/{name}_p{percent}_bound"),
                Unit::Seconds,
                &Formula::PercentileBound(percent),
                &inputs,
            ));
        }
    }
}
