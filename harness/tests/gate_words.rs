//! What a gate prints, of one archive and demands that pass, fail and are open.

mod archive_fixture;

use archive_fixture::sealed;
use palindrome_harness::archive::Archive;
use palindrome_harness::derive::{Figures, Metric};
use palindrome_harness::gate::{Outcome, Place, annotations, explain, judge, junit, summary};
use palindrome_harness::stats::Decision;
use palindrome_harness::study::{Direction, Rule};

/// B takes about twice A's time.
fn figures() -> Figures {
    let folder = tempfile::tempdir().unwrap();
    let path = sealed(folder.path(), &[true, false]);
    Archive::open(&path).unwrap().figures().unwrap().unwrap()
}

fn rule(metric: Metric, margin: f64, direction: Direction) -> Rule {
    Rule {
        metric,
        level: None,
        margin,
        direction,
        declared: "gate/0/margin".into(),
    }
}

fn place() -> Place {
    Place {
        archive: "archives/one".into(),
        measured: "2026-11-30 (UTC), Test CPU, 2 CPUs".into(),
        notes: vec!["a note".into()],
    }
}

/// Passes, fails, lies on its margin.
fn three(figures: &Figures) -> [Rule; 3] {
    let ratio = figures.value("compare/B-over-A/ttft/ratio").unwrap();
    [
        rule(Metric::DecodeRate, 0.9, Direction::Slower),
        rule(Metric::ClientWall, 0.5, Direction::Either),
        rule(Metric::Ttft, ratio - 1.0, Direction::Slower),
    ]
}

#[test]
fn each_demand_is_decided_and_a_regression_outweighs_what_is_open() {
    let figures = figures();
    let rules = three(&figures);
    let judgement = judge(&rules, &figures);
    let decisions: Vec<Decision> = judgement.rules.iter().map(|j| j.decision).collect();
    assert_eq!(
        decisions,
        [Decision::Pass, Decision::Regression, Decision::Inconclusive]
    );
    assert_eq!(judgement.outcome, Outcome::Regression);
    let why = judgement.reason.as_deref().unwrap();
    assert_eq!(
        why,
        "B differs from A by more than the margin of 0.5 (client wall time)"
    );

    let open = judge(&rules[2..], &figures);
    assert_eq!(open.outcome, Outcome::Inconclusive);
    let why = open.reason.unwrap();
    assert!(
        why.ends_with("start a new study, for adding sessions until it settles is not a test"),
        "{why}"
    );
    assert_eq!(judge(&rules[..1], &figures).outcome, Outcome::Pass);
    assert_eq!(judge(&[], &figures).outcome, Outcome::NoRules);
}

#[test]
fn the_screen_the_summary_and_the_xml() {
    let figures = figures();
    let judgement = judge(&three(&figures), &figures);
    insta::assert_snapshot!("screen", explain(&judgement, &figures, &place()));
    let github =
        annotations(&judgement, &figures) + "\n" + &summary(&judgement, &figures, &place());
    insta::assert_snapshot!("github", github);
    insta::assert_snapshot!("junit", junit(&judgement, &figures));
}
