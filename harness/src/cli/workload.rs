//! `palindrome workload`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::study::beside;
use super::workload_args::{CheckArgs, ImportArgs, WorkloadCommand};
use super::{Exit, Failure};
use crate::server::{HashCache, Programs, ServerKind, ServerProcess};
use crate::session::Cancel;
use crate::setup::cache_folder;
use crate::study::{Arm, ServerLimits};
use crate::workload::check::{Counter, Counts, GatherError, Gathered, gather, judge, table};
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
    let me = std::env::current_exe()
        .map_err(|e| failed(format!("cannot find this program's own file: {e}")))?;
    let arm = Arm {
        name: "tokenizer".to_owned(),
        label: "tokenizer".to_owned(),
        kind: ServerKind::PalindromeEngine,
        model: Some(model.canonicalize().map_err(|e| {
            Failure::new(
                Exit::Usage,
                format!("cannot read the model {}: {e}", model.display()),
            )
        })?),
        threads: Some(1),
        ctx: Some(256),
        args: Vec::new(),
        env: BTreeMap::new(),
        program: None,
        command: Vec::new(),
        health: "/health".to_owned(),
        script: None,
    };
    let programs = Programs {
        engine: beside(&me, "palindrome-engine"),
        llama_cpp: None,
        palindrome: Some(me),
    };
    let path = std::env::temp_dir().join(format!("palindrome-check-{}.log", std::process::id()));
    let log =
        File::create(&path).map_err(|e| failed(format!("cannot write {}: {e}", path.display())))?;
    let cancelled = || cancel.is_set();
    let launched = ServerProcess::launch(
        &arm,
        &programs,
        &ServerLimits::default(),
        &mut HashCache::open(Some(cache_folder().join("hashes.json")), false),
        (&log, &path),
        &cancelled,
    );
    // The log's end is in the error.
    let _ = fs::remove_file(&path);
    let (server, _) = launched.map_err(|e| failed(e.to_string()))?;
    let counts = count(gathered, Counter::Server(server.port()), cancel);
    server.stop(Duration::from_secs(5));
    Ok(counts)
}
