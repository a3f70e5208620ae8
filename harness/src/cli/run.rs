//! `palindrome run`.

use std::path::{Path, PathBuf};

use super::aa::{measured, this_host};
use super::args::RunArgs;
use super::dry_run::dry_run;
use super::events::Events;
use super::keys::secret_key;
use super::quick;
use super::study::{Request, run_and_tell};
use super::{Exit, Failure};
use crate::archive::sign_archive;
use crate::derive::{Foresight, Spread, foresee};
use crate::host::HostRecord;
use crate::report::verdict_table;
use crate::setup::cache_folder;
use crate::study::{Plan, Study};

/// Runs a study; prints its verdict table and where the archive is.
pub fn run(args: RunArgs) -> Result<Exit, Failure> {
    let study = quick::study(&args)?;
    let archives = args.out.unwrap_or_else(|| PathBuf::from("archives"));
    if args.dry_run {
        return dry_run(&study, &archives, args.json);
    }
    let given = args.study.as_deref();
    // What has begun goes on as it was planned.
    let yes = args.yes || args.resume.is_some();
    refuse_unseen(&study, given.unwrap_or(Path::new("the quick study")), yes)?;
    // Before anything runs: a key that cannot be read is better known now.
    let key = args.sign.as_deref().map(secret_key).transpose()?;
    let events = args.json.then(Events::default);
    let request = Request {
        archives,
        resume: args.resume,
        rehash: args.rehash,
        engine: None,
    };
    let outcome = run_and_tell(&study, request, events.as_ref());
    let outcome = outcome.map_err(|failure| match given {
        Some(_) => failure,
        None => quick::resumable(failure),
    });
    let outcome = outcome.inspect_err(|failure| {
        if let Some(events) = &events {
            events.stopped(failure);
        }
    })?;
    if let Some(key) = &key {
        sign_archive(&outcome.archive, key)?;
    }
    if events.is_none() {
        print!("{}", verdict_table(&outcome.figures));
        println!("\narchive: {}", outcome.archive.display());
    }
    if let Some(reason) = &outcome.reason {
        eprintln!("{reason}");
    }
    Ok(outcome.exit)
}

/// Says what a study can see; refuses one that cannot settle its own margin, but for `--yes`.
pub(super) fn refuse_unseen(study: &Study, path: &Path, yes: bool) -> Result<(), Failure> {
    let file = path.display();
    if let Some(rule) = study.rules.first()
        && study.quartets < 2
        && !yes
    {
        let margin = rule.margin;
        let message = format!(
            "{file}: {} quartet gives no interval, so a margin of {margin} cannot be settled: give at least 2 quartets (3 \
             is usual), or `--yes` to run it all the same",
            study.quartets
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    let foresight = foresight(study);
    eprintln!("{}", foresight.sentence);
    match foresight.margin_unseen {
        Some(why) if !yes => {
            let message = format!("{file}: {why}; `--yes` runs it all the same");
            Err(Failure::new(Exit::Usage, message))
        }
        _ => Ok(()),
    }
}

/// What the study can see, by the spread that its file assumes, or else that an A/A study measured
/// on this machine.
pub fn foresight(study: &Study) -> Foresight {
    let assumed = study.assumed_spread.map(|share| Spread {
        log_deviation: libm::log1p(share),
        source: "assumed by the study file".to_owned(),
    });
    let spread = assumed.or_else(|| {
        // A record that cannot be read is as none: `doctor` says what is wrong with it.
        let known = HostRecord::load(&cache_folder(), &this_host()).ok()?;
        let metric = study.primary.key();
        // Of the study's own kind of server where one was measured, of any but a mock otherwise.
        let mut kinds = study.arms.iter().map(|arm| arm.kind);
        let own = kinds.find_map(|kind| known.newest_of(metric, kind));
        let (record, deviation) = own.or_else(|| known.newest(metric))?;
        Some(measured(record, deviation))
    });
    foresee(
        &Plan::of(study),
        study.primary,
        study.margin,
        spread.as_ref(),
    )
}
