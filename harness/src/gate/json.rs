//! The judgement for programs.

use serde_json::{Value, json};

use super::text::word;
use super::{Judgement, Place};
use crate::derive::Figures;

/// One object: outcome, why, every demand with unrounded values.
pub fn json(judgement: &Judgement, figures: &Figures, place: &Place, exit: u8) -> Value {
    let rules: Vec<Value> = judgement
        .rules
        .iter()
        .map(|j| {
            json!({
                "metric": j.rule.metric, "level": j.rule.level, "margin": j.rule.margin,
                "direction": j.rule.direction, "declared": j.rule.declared,
                "base": j.base, "other": j.other, "figure": j.figure, "ratio": j.ratio,
                "low": j.interval.map(|i| i.low), "high": j.interval.map(|i| i.high),
                "decision": word(j.decision).to_lowercase(), "why": j.why,
            })
        })
        .collect();
    let identity: Vec<Value> = judgement
        .identity
        .iter()
        .map(|(what, equal)| json!({ "what": what, "equal": equal }))
        .collect();
    json!({
        "schema": "1.0", "archive": place.archive, "study": figures.study(), "exit": exit,
        "outcome": judgement.outcome, "reason": judgement.reason, "rules": rules, "identity": identity,
        "interval": figures.interval_title(), "measured": place.measured, "notes": place.notes,
        "verdict": figures.verdict(),
    })
}
