//! `palindrome aa`: how much one server differs from itself on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::AaArgs;
use super::study::{Outcome, Request, run_to_seal};
use super::{Exit, Failure};
use crate::derive::{Figures, Foresight, Metric, Spread, foresee_pairs};
use crate::host::{AaRecord, HostFacts, HostRecord, SpreadOf};
use crate::report::verdict_table;
use crate::setup::{cache_folder, workspace_root};
use crate::stats::ALPHA;
use crate::study::{AaOptions, Study, aa_study};

/// Pairs of a default study.
const DEFAULT_PAIRS: usize = 6;

/// Runs the A/A study, keeps its spread in the host's record, and says what it means.
pub fn aa(args: AaArgs) -> Result<Exit, Failure> {
    let study = study(&args)?;
    let outcome = run_to_seal(
        &study,
        Request {
            archives: args.out.unwrap_or_else(|| PathBuf::from("archives")),
            resume: args.resume,
            rehash: false,
            engine: None,
        },
    )?;
    let Outcome {
        archive,
        figures,
        exit,
        reason,
    } = outcome;
    let host = this_host();
    let cache = cache_folder();
    let spreads = spreads(&figures);
    let measured = spreads.iter().any(|s| s.metric == figures.primary().key());
    if !measured {
        let why = "no spread was measured: it needs at least 2 quartets in which every answer shows the metric";
        let message = format!(
            "{}; archive: {}",
            reason.as_deref().unwrap_or(why),
            archive.display()
        );
        return Err(Failure::new(Exit::NothingMeasured, message));
    }
    let record = AaRecord {
        utc: host.utc.clone(),
        archive: archive.canonicalize().unwrap_or(archive.clone()),
        server: study.arms.first().map(server).unwrap_or_default(),
        kind: study.arms.first().map(|arm| arm.kind),
        pairs: figures.value("study/pairs").unwrap_or_default() as usize,
        other_work: figures.verdict().other_work(),
        spreads,
    };
    let kept = HostRecord::load(&cache, &host)
        .and_then(|mut known| known.add(&cache, &host, record.clone()))
        .map_err(|e| {
            let message = format!(
                "the host's record in {} cannot be kept: {e}",
                cache.display()
            );
            Failure::new(Exit::HostGuard, message)
        })?;
    if args.json {
        let line = json!({
            "archive": archive, "exit": exit as u8, "reason": reason, "record": kept, "aa": record,
            "verdict": figures.verdict(),
        });
        println!("{line}");
    } else {
        print!("{}", verdict_table(&figures));
        println!();
        for &metric in figures.metrics() {
            if let Some(line) = what_is_seen(&record, metric) {
                println!("{}", line.sentence);
            }
        }
        println!(
            "\narchive: {}\nrecord:  {}",
            archive.display(),
            kept.display()
        );
    }
    if let Some(reason) = &reason {
        eprintln!("{reason}");
    }
    Ok(exit)
}

/// The server without its number: `bundled engine`.
fn server(arm: &crate::study::Arm) -> String {
    let label = arm.label.split(", run ").next();
    label.unwrap_or(&arm.label).to_owned()
}

/// The A/A study of a study file's arm, or of a model with the demo's workload.
fn study(args: &AaArgs) -> Result<Study, Failure> {
    let mut options = AaOptions {
        arm: args.arm.clone(),
        quartets: args.quartets,
        model: None,
    };
    let is_study = args.what.extension().is_some_and(|e| e == "toml");
    let path = if is_study {
        args.what.clone()
    } else {
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let Some(root) = workspace_root(&here) else {
            let message = "a model is measured with the requests of this project's checkout, and none is here: cd into \
                           one, or give a study file (STUDY.toml)";
            return Err(Failure::new(Exit::Usage, message));
        };
        let model = args.what.canonicalize().map_err(|e| {
            Failure::new(
                Exit::Usage,
                format!("cannot read the model {}: {e}", args.what.display()),
            )
        })?;
        options.model = Some(model.display().to_string());
        options.arm.get_or_insert_with(|| "engine".to_owned());
        root.join("workloads/demo.toml")
    };
    let text = fs::read_to_string(&path).map_err(|e| {
        let message = format!("cannot read the study file {}: {e}", path.display());
        Failure::new(Exit::Usage, message)
    })?;
    Ok(aa_study(&path, &text, &options)?)
}

fn spreads(figures: &Figures) -> Vec<SpreadOf> {
    let level = figures.protocol().primary_level();
    let all = figures.comparisons().iter().filter(|c| c.level == level);
    all.filter_map(|c| {
        Some(SpreadOf {
            metric: c.metric.key().to_owned(),
            pair_deviation: figures.value(&format!("{}/pair_deviation", c.prefix))?,
        })
    })
    .collect()
}

/// This machine, as far as its record is concerned.
pub fn this_host() -> HostFacts {
    HostFacts::collect(Path::new("."), BTreeMap::new())
}

/// The spread of a metric that an A/A study measured.
pub fn measured(record: &AaRecord, deviation: f64) -> Spread {
    let day = record.utc.split('T').next().unwrap_or_default();
    Spread {
        log_deviation: deviation,
        source: format!(
            "measured on this machine with {}{}, {day}, {} pairs{}",
            record.server,
            of_kind(record),
            record.pairs,
            if record.other_work {
                ", beside other work"
            } else {
                ""
            }
        ),
    }
}

/// A record's kind of server, in brackets; nothing where it was not kept.
pub fn of_kind(record: &AaRecord) -> String {
    let kind = record.kind.map(|kind| format!(" ({})", kind.name()));
    kind.unwrap_or_default()
}

/// What a default study could see of a metric here; absent where the A/A study did not measure it.
pub fn what_is_seen(record: &AaRecord, metric: Metric) -> Option<Foresight> {
    let spread = measured(record, record.deviation(metric.key())?);
    Some(foresee_pairs(
        DEFAULT_PAIRS,
        ALPHA,
        metric,
        None,
        Some(&spread),
    ))
}
