//! `palindrome workload`.

use std::path::Path;

use serde_json::json;

use super::study::beside;
use super::workload_args::{CheckArgs, ImportArgs, WorkloadCommand};
use super::{Exit, Failure};
use crate::session::Cancel;
use crate::workload::check::{
    Counter, Counts, EngineServer, GatherError, Gathered, gather, judge, table,
};
use crate::workload::import::{Choice, Options, import};
use crate::workload::{Folder, starter};

impl From<GatherError> for Failure {
    fn from(error: GatherError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

/// Runs a command about workloads.
pub fn workload(command: &WorkloadCommand) -> Result<Exit, Failure> {
    match command {
        WorkloadCommand::Import(args) => import_file(args),
        WorkloadCommand::Check(args) => check(args),
        WorkloadCommand::Study(args) => {
            print!("{}", starter(&Folder::read(&args.folder)?));
            Ok(Exit::Done)
        }
    }
}

fn import_file(args: &ImportArgs) -> Result<Exit, Failure> {
    let options = Options {
        format: args.format.into(),
        file: args.file.clone(),
        out: args.out.clone(),
        choice: Choice {
            first: args.first,
            choose: args.choose,
            choose_seed: args.choose_seed,
            min_tokens: args.min_tokens,
            max_tokens: args.max_tokens,
        },
        turns: args.turns.into(),
        answer_tokens: args.answer_tokens,
        path: args.path.clone(),
        model: args.model.clone(),
        sampling: (&args.sampling).into(),
        skip_bad: args.skip_bad,
        block_tokens: args.block_tokens,
        tokens_per_word: args.tokens_per_word,
        bytes_per_token: args.bytes_per_token,
    };
    let done = import(&options)?;
    if args.json {
        let line = json!({
            "folder": args.out, "bodies": done.bodies, "requests": done.seen, "skipped": done.skipped,
            "assumed": done.assumed,
        });
        println!("{line}");
        return Ok(Exit::Done);
    }
    for line in &done.skipped {
        eprintln!("left out, {}: {line}", args.file.display());
    }
    for line in &done.assumed {
        println!("{line}");
    }
    println!(
        "{}: {} bodies of {} requests, {} bad line(s) left out; a study to be filled in: {}",
        args.out.display(),
        done.bodies,
        done.seen,
        done.skipped.len(),
        args.out.join("study.toml").display()
    );
    Ok(Exit::Done)
}

/// Exit 0 only where every server would be asked the same.
fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let gathered = gather(&args.what)?;
    let cancel = Cancel::on_interrupt()
        .map_err(|e| Failure::new(Exit::HostGuard, format!("cannot listen for Ctrl-C: {e}")))?;
    let (counts, by) = match (&args.model, args.server) {
        (Some(model), _) => (
            with_model(model, &gathered, &cancel)?,
            format!("M by {}", model.display()),
        ),
        (None, Some(port)) => (
            count(&gathered, Counter::Server(port), &cancel),
            format!("M by http://127.0.0.1:{port}"),
        ),
        (None, None) => (
            count(&gathered, Counter::Bytes, &cancel),
            "not counted".to_owned(),
        ),
    };
    if cancel.is_set() {
        return Err(Failure::new(Exit::Incomplete, "interrupted"));
    }
    let checked = judge(gathered, counts);
    if args.json {
        let bodies: Vec<_> = checked
            .bodies
            .iter()
            .map(|(body, counts)| json!({ "body": body, "prompt_tokens": counts }))
            .collect();
        let line = json!({
            "fair": checked.is_fair(), "counted": by, "bodies": bodies, "findings": checked.findings,
        });
        println!("{line}");
    } else {
        print!("{}", table(&checked, &by));
    }
    Ok(if checked.is_fair() {
        Exit::Done
    } else {
        Exit::Usage
    })
}

fn count(gathered: &Gathered, counter: Counter, cancel: &Cancel) -> Vec<Counts> {
    let cancelled = || cancel.is_set();
    gathered
        .bodies
        .iter()
        .map(|body| counter.count(body, &cancelled))
        .collect()
}

/// Serves the model with the bundled engine for as long as it takes to count.
fn with_model(model: &Path, gathered: &Gathered, cancel: &Cancel) -> Result<Vec<Counts>, Failure> {
    let failed = |what: String| Failure::new(Exit::Server, what);
    if !model.is_file() {
        let message = format!("no model {}: give a GGUF file", model.display());
        return Err(Failure::new(Exit::Usage, message));
    }
    let me = std::env::current_exe()
        .map_err(|e| failed(format!("cannot find this program's own file: {e}")))?;
    let Some(engine) = beside(&me, "palindrome-engine") else {
        let hint =
            "the engine is not built: run `cargo build --release`, or count with `--server URL`";
        return Err(failed(hint.to_owned()));
    };
    let serving = EngineServer::start(&me, &engine, model, &|| cancel.is_set()).map_err(failed)?;
    Ok(count(gathered, Counter::Server(serving.port()), cancel))
}
