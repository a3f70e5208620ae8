//! `palindrome history`.

use std::fmt::Write as _;

use serde_json::json;

use super::args_claims::HistoryArgs;
use super::{Exit, Failure};
use crate::derive::{Metric, Published, three_digits};
use crate::history::{Line, Link, chain, lines};
use crate::report::{aligned, value_and_label, with_unit};

/// Lists a metric over archives; says of each ratio how it stands to the one before, or why it may
/// not be set against it.
pub fn history(args: &HistoryArgs) -> Result<Exit, Failure> {
    let (found, skipped) = lines(&args.folder, &args.metric).map_err(|e| {
        let message = format!("cannot list {}: {e}", args.folder.display());
        Failure::new(Exit::Usage, message)
    })?;
    if found.is_empty() {
        let known: Vec<&str> = Metric::ALL.iter().map(|m| m.key()).collect();
        let mut message = format!(
            "no archive in {} shows {}; compared metrics are {}",
            args.folder.display(),
            args.metric,
            known.join(", ")
        );
        for s in &skipped {
            let _ = write!(message, "\n{}: {}", s.folder, s.why);
        }
        return Err(Failure::new(Exit::NothingMeasured, message));
    }
    let links = chain(&found);
    if args.json {
        let all: Vec<_> = found
            .iter()
            .zip(&links)
            .map(|(line, link)| {
                let interval = line.interval.map(|i| [i.low, i.high]);
                json!({ "line": line, "interval": interval, "link": link })
            })
            .collect();
        let object =
            json!({ "schema": "1.0", "metric": args.metric, "lines": all, "skipped": skipped });
        println!("{object}");
        return Ok(Exit::Done);
    }
    print!("{}", aligned(&table(&found, &links)));
    for (number, (_, link)) in found.iter().zip(&links).enumerate() {
        if let Link::Refused(why) = link {
            println!("line {}: not chained to the one before: {why}", number + 1);
        }
    }
    for line in found.iter().filter(|l| l.no_ratio.is_some()) {
        let why = line.no_ratio.as_deref().unwrap_or_default();
        println!(
            "{}: no ratio of {} and {}: {why}",
            line.archive, line.other.0, line.base.0
        );
    }
    for s in &skipped {
        println!("left out: {}: {}", s.folder, s.why);
    }
    println!(
        "M measured, C calculated. The last columns divide ratios of different times: they have no interval, and are a \
         glance, not a claim."
    );
    Ok(Exit::Done)
}

fn table(found: &[Line], links: &[Link]) -> Vec<Vec<String>> {
    let head = [
        "",
        "started (UTC)",
        "study",
        "ratio of",
        "own figures",
        "ratio",
        "interval",
        "over the one before",
        "over the chain's first",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (number, (line, link)) in found.iter().zip(links).enumerate() {
        let (before, first) = match link {
            Link::First => ("first".to_owned(), "first".to_owned()),
            Link::Refused(_) => ("refused".to_owned(), "first".to_owned()),
            Link::Chained {
                since_before,
                since_first,
            } => (
                value_and_label(Some(since_before)),
                value_and_label(Some(since_first)),
            ),
        };
        let own = |figure: &Option<Published>| with_unit(figure.as_ref());
        let level = line
            .level
            .as_ref()
            .map_or_else(String::new, |l| format!(" at {l}"));
        rows.push(vec![
            format!("{}", number + 1),
            line.utc.get(..16).unwrap_or(&line.utc).replace('T', " "),
            line.study.clone(),
            format!("{} / {}{level}", line.other.0, line.base.0),
            format!("{}, {}", own(&line.other.1), own(&line.base.1)),
            value_and_label(line.ratio.as_ref()),
            line.interval.map_or_else(
                || "none".to_owned(),
                |i| format!("{} to {} C", three_digits(i.low), three_digits(i.high)),
            ),
            before,
            first,
        ]);
    }
    rows
}
