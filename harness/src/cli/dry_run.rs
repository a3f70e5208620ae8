//! `palindrome run --dry-run`: what would run, and what it could see. Starts nothing.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::earlier;
use super::run::foresight;
use super::study::programs;
use super::{Exit, Failure};
use crate::build::{Site, sites};
use crate::derive::expected_duration;
use crate::server::{LaunchContext, launcher};
use crate::session::RunError;
use crate::setup::cache_folder;
use crate::study::{Built, Plan, Role, Study};

/// Stands for the port that each launch finds free.
const PORT: u16 = u16::MAX;

/// Prints the plan, the commands, the requests, how long it will take and what the study can see.
/// `archives` is where earlier ones may be.
pub fn dry_run(study: &Study, archives: &Path, as_json: bool) -> Result<Exit, Failure> {
    let plan = Plan::of(study);
    let sites = sites(study, &cache_folder().join("builds")).map_err(RunError::from)?;
    let commands = commands(&launched(study, &sites))?;
    let foresight = foresight(study);
    let seen = earlier::seen(archives, &plan);
    let expected = expected_duration(&plan, seen.as_ref(), study.assumed_session_s);
    if as_json {
        let line = json!({
            "plan": plan, "commands": commands, "can_see": foresight.sentence,
            "margin_unseen": foresight.margin_unseen, "expected": expected, "builds": builds(&sites),
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
    for site in &sites {
        println!("build    {}", told(site));
    }
    println!("duration {}", expected.sentence);
    println!("\n{}", foresight.sentence);
    if let Some(why) = &foresight.margin_unseen {
        println!("! {why}; without `--yes` it is refused");
    }
    Ok(Exit::Done)
}

/// The study as it will be launched from what is built.
fn launched(study: &Study, sites: &[Site]) -> Study {
    let mut study = study.clone();
    for site in sites {
        for arm in study.arms.iter_mut().filter(|arm| arm.name == site.arm) {
            arm.program.clone_from(&site.program);
            arm.built = Some(Built {
                tree: site.tree.clone(),
                facts: BTreeMap::new(),
            });
        }
    }
    study
}

/// What is built of an arm, and whether it is there.
fn told(site: &Site) -> String {
    let by = match site.command_line() {
        none if none.is_empty() => "only checked out".to_owned(),
        line => format!("by `{line}`"),
    };
    let state = if site.is_made() {
        "it is there"
    } else {
        "before the first session"
    };
    let tree = site.tree.display();
    format!("{}: {} {by} in {tree}; {state}", site.arm, site.what())
}

fn builds(sites: &[Site]) -> Vec<serde_json::Value> {
    let one = |site: &Site| {
        json!({
            "arm": site.arm, "command": site.command, "rev": site.rev, "commit": site.commit, "tree": site.tree,
            "made": site.is_made(),
        })
    };
    sites.iter().map(one).collect()
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
