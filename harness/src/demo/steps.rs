//! The seven steps of `palindrome demo`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use super::{Profile, build_engine};
use crate::archive::Archive;
use crate::audit::audit;
use crate::cli::{DemoArgs, Exit, Failure, Outcome, Request, describe, run_to_seal};
use crate::host::Readings;
use crate::report::{self, verdict_table};
use crate::setup::{Choice, cache_folder, ensure, workspace_root};
use crate::study::Study;

const STEPS: usize = 7;

struct Steps {
    number: usize,
    started: Instant,
}

impl Steps {
    fn next(&mut self, title: &str) {
        self.number += 1;
        let seconds = self.started.elapsed().as_secs();
        eprintln!("[{}/{STEPS}] {title} ({seconds} s so far)", self.number);
    }
}

/// Builds the engine, brings llama.cpp here, runs the study, seals, audits, reports.
pub fn demo(args: DemoArgs) -> Result<Exit, Failure> {
    let mut steps = Steps {
        number: 0,
        started: Instant::now(),
    };
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let root = workspace_root(&here).ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "the demo runs in a checkout of this project, and none is here: cd into one",
        )
    })?;

    steps.next("building the engine");
    let engine = build_engine(&root, Profile::Release)?;
    steps.next("setting up llama.cpp");
    let server = ensure(&cache_folder(), &Choice::Default, &|step| {
        eprintln!("      {step}");
    })?;
    for line in describe(&server).lines() {
        eprintln!("      {line}");
    }
    steps.next("reading the study, its bodies and the model's place");
    let study = Study::load(
        &args
            .study
            .unwrap_or_else(|| root.join("workloads/demo.toml")),
    )?;
    check_models(&study)?;
    if let Some(work) = Readings::take().other_work() {
        eprintln!("      note: {work}");
    }
    steps.next("running the study: one unscored session, then fresh servers in mirrored order");
    let archives = args.out.unwrap_or_else(|| root.join("archives"));
    let request = Request {
        archives,
        resume: None,
        rehash: false,
        engine: Some(engine),
    };
    let Outcome {
        archive,
        figures,
        exit,
        reason,
    } = run_to_seal(&study, request)?;
    steps.next("sealing the archive");
    eprintln!("      {}", archive.display());
    steps.next("auditing the archive: everything again from the raw bytes");
    let outcome = audit(&archive)?;
    eprint!("{}", indented(&outcome.to_string()));
    steps.next("writing the report");
    let reports = args.reports.unwrap_or_else(|| root.join("reports"));
    let written = report::write(&Archive::open(&archive)?, &reports)?;

    let exit = if outcome.passed() { exit } else { Exit::Audit };
    if args.json {
        let line = json!({
            "archive": archive, "report": written.html, "chart": written.chart,
            "audit_passed": outcome.passed(), "exit": exit as u8, "reason": reason,
            "verdict": figures.verdict(),
        });
        println!("{line}");
    } else {
        println!("\n{}", verdict_table(&figures));
        println!("archive  {}", archive.display());
        println!("report   {}", written.html.display());
        println!("chart    {}", written.chart.display());
        println!("\nnext:    palindrome audit {}", archive.display());
        println!(
            "         palindrome run STUDY.toml   (docs/studies.md says what a study file holds)"
        );
        println!(
            "         palindrome setup llama-cpp --native   (a baseline compiled for this host)"
        );
    }
    if let Some(reason) = reason {
        eprintln!("{reason}");
    }
    Ok(exit)
}

fn check_models(study: &Study) -> Result<(), Failure> {
    let missing = |path: &&Path| !path.is_file();
    match study
        .arms
        .iter()
        .filter_map(|arm| arm.model.as_deref())
        .find(missing)
    {
        None => Ok(()),
        Some(path) => Err(Failure::new(
            Exit::Usage,
            format!(
                "the model {} is not there; it is part of the checkout: `git checkout -- workloads`",
                path.display()
            ),
        )),
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    format!("      {}\n", lines.join("\n      "))
}
