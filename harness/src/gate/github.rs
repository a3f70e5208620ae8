//! Annotations and a job summary for GitHub Actions.

use std::fmt::Write as _;

use super::text::{passes, range, title, word};
use super::{Judgement, Outcome, Place};
use crate::derive::{Figures, three_digits};
use crate::stats::Decision;

/// Workflow commands, one a line: an annotation for each demand that does not pass, or one for all.
pub fn annotations(judgement: &Judgement, figures: &Figures) -> String {
    let mut lines: Vec<String> = judgement
        .rules
        .iter()
        .filter_map(|j| {
            let kind = match j.decision {
                Decision::Pass => return None,
                Decision::Regression => "error",
                Decision::Inconclusive => "warning",
            };
            Some(command(kind, &title(j), j.why.as_deref()?))
        })
        .collect();
    let study = format!("{}: {}", judgement.outcome.word(), figures.study());
    match (judgement.outcome, &judgement.reason) {
        (Outcome::Identity | Outcome::NothingMeasured, Some(reason)) => {
            lines.insert(0, command("error", &study, reason));
        }
        (Outcome::Pass, _) => lines.push(command("notice", &study, &figures.verdict().sentence)),
        (Outcome::NoRules, _) => lines.push(command(
            "warning",
            &study,
            "the study declares no margin and no [gate]",
        )),
        _ => {}
    }
    lines.concat()
}

/// An annotation of a gate that could not judge.
pub fn failed(what: &str, why: &str) -> String {
    command("error", &format!("palindrome gate {what}"), why)
}

/// A workflow command. GitHub reads `%0A` as a line break, and needs `,` and `:` of a title escaped.
fn command(kind: &str, title: &str, message: &str) -> String {
    let message = message
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A");
    let title = title
        .replace('%', "%25")
        .replace(['\r', '\n'], " ")
        .replace(':', "%3A")
        .replace(',', "%2C");
    format!("::{kind} title={title}::{message}\n")
}

/// Markdown for the job's page. Ends with a newline.
pub fn summary(judgement: &Judgement, figures: &Figures, place: &Place) -> String {
    let mut out = format!(
        "### {}: {}\n\n{}\n",
        judgement.outcome.word(),
        cell(figures.study()),
        cell(&figures.verdict().sentence)
    );
    if !judgement.rules.is_empty() {
        let _ = write!(
            out,
            "\n| demand | ratio | {} | passes | |\n| --- | --- | --- | --- | --- |\n",
            figures.interval_title()
        );
        for j in &judgement.rules {
            let ratio = j
                .ratio
                .map_or_else(|| "none".to_owned(), |r| format!("{} C", three_digits(r)));
            let _ = writeln!(
                out,
                "| {} | {ratio} | {} | {} | {} |",
                cell(&title(j)),
                range(j),
                passes(&j.rule),
                word(j.decision)
            );
        }
    }
    out.push('\n');
    if let Some(reason) = &judgement.reason {
        let _ = write!(out, "Why: {}.\n\n", cell(reason));
    }
    for line in place.notes.iter().chain(&figures.verdict().warnings) {
        let _ = writeln!(out, "* {}", cell(line));
    }
    let _ = write!(
        out,
        "\nArchive `{}`; {}.\n",
        place.archive.replace('`', "'"),
        cell(&place.measured)
    );
    out
}

/// Text that stays in its cell, and is no markup.
fn cell(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_command_is_escaped() {
        assert_eq!(
            command("error", "a: b, 5%", "50% slower\nthan before"),
            "::error title=a%3A b%2C 5%25::50%25 slower%0Athan before\n"
        );
        assert_eq!(cell("a|b\nc <d>"), "a\\|b c &lt;d>");
    }
}
