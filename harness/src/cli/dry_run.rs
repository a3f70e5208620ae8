//! `palindrome run --dry-run`: what would run, and what it could see. Starts nothing.

use std::collections::BTreeMap;

use serde_json::json;

use super::run::foresight;
use super::study::programs;
use super::{Exit, Failure};
use crate::server::{LaunchContext, launcher};
use crate::study::{Plan, Role, Study};

/// Stands for the port that each launch finds free.
const PORT: u16 = u16::MAX;

/// Prints the plan, the commands, the requests and what the study can see.
pub fn dry_run(study: &Study, as_json: bool) -> Result<Exit, Failure> {
    let plan = Plan::of(study);
    let commands = commands(study)?;
    let foresight = foresight(study);
    if as_json {
        let line = json!({
            "plan": plan, "commands": commands, "can_see": foresight.sentence,
            "margin_unseen": foresight.margin_unseen,
        });
        println!("{line}");
        return Ok(Exit::Done);
    }
    println!("study    {}", plan.study);
    println!("order    {}", order(&plan));
    let steps = plan.steps();
    let scored = steps.iter().filter(|s| s.scored).count();
    println!(
        "sessions {}, each {} requests of which {scored} are scored",
        plan.sessions.len(),
        steps.len()
    );
    if let Some(looks) = &plan.looks {
        let each: Vec<String> = looks
            .at
            .iter()
            .zip(&looks.levels)
            .map(|(quartets, level)| format!("after {quartets} quartets at a level of {level:.5}"))
            .collect();
        println!("looks    {}", each.join(", "));
    }
    for (arm, command) in &commands {
        println!("{arm:8} {command}");
    }
    println!("\n{}", foresight.sentence);
    if let Some(why) = &foresight.margin_unseen {
        println!("! {why}; without `--yes` it is refused");
    }
    Ok(Exit::Done)
}

/// Each arm's command, by arm in the study's order of names.
fn commands(study: &Study) -> Result<BTreeMap<String, String>, Failure> {
    let programs = programs(study, None)?;
    let command = |arm| -> Result<String, Failure> {
        let context = LaunchContext {
            arm,
            port: PORT,
            programs: &programs,
        };
        let spec = launcher(arm.kind)
            .command(&context)
            .map_err(|e| Failure::new(Exit::Server, e))?;
        let words = std::iter::once(spec.program.display().to_string()).chain(spec.args);
        let words: Vec<String> = words
            .map(|word| word.replace(&PORT.to_string(), "{port}"))
            .collect();
        Ok(words.join(" "))
    };
    let arms = study.arms.iter();
    arms.map(|arm| Ok((arm.name.clone(), command(arm)?)))
        .collect()
}

/// `A (burn-in) | A B B A | B A A B`.
fn order(plan: &Plan) -> String {
    let mut out = String::new();
    let mut before = None;
    for session in &plan.sessions {
        if session.quartet != before {
            out.push_str(if out.is_empty() { "" } else { " |" });
            before = session.quartet;
        }
        out.push_str(if out.is_empty() { "" } else { " " });
        out.push_str(&session.arm);
        if session.role == Role::BurnIn {
            out.push_str(" (burn-in)");
        }
    }
    out
}
