//! `palindrome gate`: a study's demands on its figures, as an exit code.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::args_gate::{GateArgs, GateFormat};
use super::run::refuse_unseen;
use super::study::{Request, run_to_seal};
use super::{Exit, Failure};
use crate::archive::Archive;
use crate::audit::{Audit, audit};
use crate::derive::Figures;
use crate::gate::{
    Judgement, Outcome, Place, annotations, explain, failed, json, judge as judge_rules, junit,
    summary,
};
use crate::study::{Baseline, Before, Study, StudyFile, baseline_study};

/// Most mismatches of an audit that are printed.
const MISMATCHES: usize = 5;

/// What the study's declared identity and margins make of its figures, and why.
pub fn judge(study: &Study, figures: &Figures) -> (Exit, Option<String>) {
    let judgement = judge_rules(&study.rules, figures);
    (exit(judgement.outcome), judgement.reason)
}

/// The exit code of an outcome.
fn exit(outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Pass | Outcome::NoRules => Exit::Done,
        Outcome::Regression => Exit::Regression,
        Outcome::Inconclusive => Exit::Inconclusive,
        Outcome::Identity => Exit::Identity,
        Outcome::NothingMeasured => Exit::NothingMeasured,
    }
}

/// Runs a study or takes an archive, audits, judges, prints.
pub fn gate(args: &GateArgs) -> Result<Exit, Failure> {
    let format = format(args);
    let ended = gated(args, format);
    if let Err(failure) = &ended
        && format == GateFormat::Github
    {
        print!(
            "{}",
            failed(&args.what.display().to_string(), &failure.message)
        );
    }
    ended
}

fn format(args: &GateArgs) -> GateFormat {
    match args.format {
        Some(format) => format,
        None if args.json => GateFormat::Json,
        // GitHub sets it to `true` in every step of a workflow.
        None if env::var_os("GITHUB_ACTIONS").is_some_and(|v| v == "true") => GateFormat::Github,
        None => GateFormat::Text,
    }
}

fn gated(args: &GateArgs, format: GateFormat) -> Result<Exit, Failure> {
    let archive = if args.what.is_dir() {
        if args.baseline_program.is_some() || args.baseline_rev.is_some() {
            let message = format!(
                "{} is an archive: its arms have run; a baseline is for a study file",
                args.what.display()
            );
            return Err(Failure::new(Exit::Usage, message));
        }
        args.what.clone()
    } else {
        run(args)?
    };
    let (judgement, figures, place) = judged(&archive)?;
    let exit = match judgement.outcome {
        // Asked for, a gate that demands nothing is a mistake.
        Outcome::NoRules => Exit::Usage,
        outcome => exit(outcome),
    };
    show(args, format, exit, (&judgement, &figures, &place))?;
    Ok(exit)
}

/// Runs the study, with a baseline of its own where one is given; the sealed archive.
fn run(args: &GateArgs) -> Result<PathBuf, Failure> {
    let study = match before(args)? {
        None => Study::load(&args.what)?,
        Some(before) => {
            let text = fs::read_to_string(&args.what).map_err(|e| {
                let message = format!("cannot read the study file {}: {e}", args.what.display());
                Failure::new(Exit::Usage, message)
            })?;
            let baseline = Baseline {
                arm: args.arm.clone(),
                before,
                label: args.baseline_label.clone(),
            };
            baseline_study(&args.what, &text, &baseline)?
        }
    };
    if study.rules.is_empty() {
        let message = format!(
            "{}: nothing is demanded: give the study a `margin`, or `[gate]` tables",
            args.what.display()
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    refuse_unseen(&study, &args.what, args.yes)?;
    let request = Request {
        archives: args
            .out
            .clone()
            .unwrap_or_else(|| PathBuf::from("archives")),
        resume: None,
        rehash: false,
        engine: None,
    };
    Ok(run_to_seal(&study, request)?.archive)
}

/// What the arm was before, where a baseline is asked for.
fn before(args: &GateArgs) -> Result<Option<Before>, Failure> {
    if let Some(rev) = &args.baseline_rev {
        return Ok(Some(Before::Revision(rev.clone())));
    }
    let Some(program) = &args.baseline_program else {
        return Ok(None);
    };
    let program = program.canonicalize().map_err(|e| {
        let message = format!("cannot read the baseline {}: {e}", program.display());
        Failure::new(Exit::Usage, message)
    })?;
    Ok(Some(Before::Program(program)))
}

/// Audits an archive and holds its figures to its own study file.
fn judged(path: &Path) -> Result<(Judgement, Figures, Place), Failure> {
    let archive = Archive::open(path)?;
    if !archive.is_sealed() {
        let message = format!(
            "{} is not finished: palindrome run STUDY.toml --resume {0}",
            path.display()
        );
        return Err(Failure::new(Exit::Incomplete, message));
    }
    let outcome = audit(path)?;
    if !outcome.passed() {
        return Err(Failure::new(Exit::Audit, not_holding(path, &outcome)));
    }
    let missing = || {
        let message = format!("{}: it holds no figures", path.display());
        Failure::new(Exit::Audit, message)
    };
    let figures = archive.figures()?.ok_or_else(missing)?;
    let text = archive.read("study.toml")?;
    let text = String::from_utf8_lossy(&text);
    let file = StudyFile::parse(&path.join("study.toml"), &text)?;
    let host = archive.host()?;
    let cpus = host
        .logical_cpus
        .map_or_else(|| "? CPUs".to_owned(), |n| format!("{n} CPUs"));
    let cpu = host
        .cpu_model
        .as_deref()
        .unwrap_or("a processor without a name");
    let place = Place {
        archive: path.display().to_string(),
        measured: format!("{} (UTC), {cpu}, {cpus}", host.utc),
        notes: Vec::new(),
    };
    Ok((judge_rules(&file.rules, &figures), figures, place))
}

fn not_holding(path: &Path, outcome: &Audit) -> String {
    let all = &outcome.mismatches;
    let mut message = format!("{}: the audit failed, so nothing is judged", path.display());
    for mismatch in all.iter().take(MISMATCHES) {
        let _ = write!(message, "\nMISMATCH {mismatch}");
    }
    if all.len() > MISMATCHES {
        let _ = write!(message, "\nand {} more", all.len() - MISMATCHES);
    }
    message
}

fn show(
    args: &GateArgs,
    format: GateFormat,
    exit: Exit,
    (judgement, figures, place): (&Judgement, &Figures, &Place),
) -> Result<(), Failure> {
    match format {
        GateFormat::Text => print!("{}", explain(judgement, figures, place)),
        GateFormat::Json => println!("{}", json(judgement, figures, place, exit as u8)),
        GateFormat::Junit => print!("{}", junit(judgement, figures)),
        GateFormat::Github => {
            print!("{}", explain(judgement, figures, place));
            print!("{}", annotations(judgement, figures));
            if let Some(file) = env::var_os("GITHUB_STEP_SUMMARY") {
                let file = PathBuf::from(file);
                let text = summary(judgement, figures, place);
                let appended = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&file)
                    .and_then(|mut open| open.write_all(text.as_bytes()));
                appended.map_err(|e| unwritable(&file, &e))?;
            }
        }
    }
    if let Some(file) = &args.junit {
        fs::write(file, junit(judgement, figures)).map_err(|e| unwritable(file, &e))?;
    }
    Ok(())
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Usage,
        format!("cannot write {}: {error}", file.display()),
    )
}
