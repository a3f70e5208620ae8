//! `palindrome claim` and `palindrome claims check`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args_claims::{ClaimArgs, ClaimsCheckArgs, ClaimsCommand};
use super::{Exit, Failure};
use crate::archive::Archive;
use crate::claims::{Kept, check, claims};

/// Prints the sentences that archives allow, each between its marks. Archives are audited first.
pub fn claim(args: &ClaimArgs) -> Result<Exit, Failure> {
    let mut some = false;
    for path in &args.archives {
        let archive = Archive::open(path)?;
        let folder = archive.path().parent().unwrap_or(Path::new("."));
        let mut kept = Kept::new(folder);
        let figures = kept.figures(&archive.name());
        let figures = figures
            .as_ref()
            .map_err(|why| Failure::new(Exit::Audit, why))?;
        let (made, without) = claims(&archive, figures)?;
        some |= !made.is_empty();
        if args.json {
            println!(
                "{}",
                json!({ "archive": path, "claims": made, "without": without })
            );
            continue;
        }
        for claim in &made {
            println!("{}", claim.marked());
        }
        for line in without {
            eprintln!("{line}");
        }
    }
    Ok(if some {
        Exit::Done
    } else {
        Exit::NothingMeasured
    })
}

/// `palindrome claims check`.
pub fn claims_command(command: ClaimsCommand) -> Result<Exit, Failure> {
    match command {
        ClaimsCommand::Check(args) => check_files(&args),
    }
}

fn check_files(args: &ClaimsCheckArgs) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    // Each archive is audited once, however many files take numbers from it.
    let mut folders: BTreeMap<PathBuf, Kept> = BTreeMap::new();
    for file in &args.files {
        let text = fs::read_to_string(file).map_err(|e| {
            let message = format!("cannot read {}: {e}", file.display());
            Failure::new(Exit::Usage, message)
        })?;
        let folder = args
            .archives
            .clone()
            .unwrap_or_else(|| nearest_archives(file));
        let kept = folders
            .entry(folder.clone())
            .or_insert_with(|| Kept::new(folder));
        let checked = check(&text, kept);
        if checked.blocks == 0 {
            let message = format!(
                "{}: no marked block: `palindrome claim ARCHIVE` writes some",
                file.display()
            );
            return Err(Failure::new(Exit::Usage, message));
        }
        if !checked.findings.is_empty() {
            exit = Exit::Audit;
        }
        if args.json {
            println!(
                "{}",
                json!({ "file": file, "passed": checked.findings.is_empty(), "checked": checked })
            );
            continue;
        }
        println!(
            "{}: {} numbers in {} blocks compared with their archives, {} findings",
            file.display(),
            checked.numbers,
            checked.blocks,
            checked.findings.len()
        );
        for finding in &checked.findings {
            println!("MISMATCH {}:{finding}", file.display());
        }
    }
    Ok(exit)
}

/// The nearest folder `archives` beside a file or above it.
fn nearest_archives(file: &Path) -> PathBuf {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let above = file
        .ancestors()
        .skip(1)
        .map(|folder| folder.join("archives"));
    let found = above.into_iter().find(|folder| folder.is_dir());
    found.unwrap_or_else(|| PathBuf::from("archives"))
}
