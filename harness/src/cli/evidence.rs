//! `palindrome audit` and `palindrome report`.

use serde_json::json;

use super::args::{AuditArgs, ReportArgs};
use super::{Exit, Failure};
use crate::archive::{Archive, PublicKey};
use crate::audit::audit_with;
use crate::report;

/// Audits every archive given; one that fails does not keep the others from being looked at.
pub fn audit_all(args: &AuditArgs) -> Result<Exit, Failure> {
    let key = args.key.as_deref().map(PublicKey::read).transpose()?;
    let mut exit = Exit::Done;
    for path in &args.archives {
        let outcome = match audit_with(path, key.as_ref()) {
            Ok(outcome) => outcome,
            Err(error) => {
                exit = Exit::Audit;
                let error = error.to_string();
                if args.json {
                    let line = json!({ "archive": path, "passed": false, "error": error });
                    println!("{line}");
                } else {
                    println!("{}\nMISMATCH {error}", path.display());
                }
                continue;
            }
        };
        if !outcome.passed() {
            exit = Exit::Audit;
        }
        if args.json {
            let line = json!({ "archive": path, "passed": outcome.passed(), "audit": outcome });
            println!("{line}");
        } else {
            print!("{}\n{outcome}", path.display());
        }
    }
    Ok(exit)
}

/// Writes a report for every archive given.
pub fn report_all(args: &ReportArgs) -> Result<Exit, Failure> {
    for path in &args.archives {
        let written = report::write(&Archive::open(path)?, &args.out)?;
        if args.json {
            let line = json!({
                "html": written.html, "markdown": written.markdown, "chart": written.chart,
            });
            println!("{line}");
        } else {
            println!("{}", written.html.display());
        }
    }
    Ok(Exit::Done)
}
