//! Planned looks: a study that may end early, and only where it said so before it began.

use std::fs;

use crate::archive_fixture::forge::{caught, edit, reseal};
use crate::common::{Bench, events};
use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::audit::audit;
use palindrome_harness::derive::{derive, ended_by_look};
use palindrome_harness::report::verdict_table;
use palindrome_harness::study::Study;

// 15 ms against 300: what a busy machine adds to either is small beside it.
const QUICK: &str = "[[reply]]\nprompt_ms = 2\ntokens = 4\ngap_ms = 5\n";
const SLOW: &str = "[[reply]]\nprompt_ms = 2\ntokens = 4\ngap_ms = 100\n";
const LOOKS: &str = "[looks]\nat = [2, 3]\nspending = \"pocock\"\n";

fn bench(scripts: &[&str]) -> Bench {
    Bench::new("quartets = 3\nburn_in = false", LOOKS, scripts)
}

#[test]
fn a_settled_look_ends_the_study_and_nothing_else_does() {
    let bench = bench(&[QUICK, SLOW]);
    let writer = bench.run().unwrap();
    let path = writer.path().to_path_buf();
    let looked: Vec<_> = events(&path)
        .into_iter()
        .filter(|(kind, _)| kind == "looked")
        .collect();
    assert_eq!(looked.len(), 1);
    assert_eq!(looked[0].1["quartets"], 2);
    assert_eq!(looked[0].1["ended"], true);
    let facts = Archive::open(&path).unwrap().facts().unwrap();
    assert_eq!(facts.sessions.len(), 8, "two quartets of three");
    let figures = derive(&facts);
    let look = figures.look().unwrap();
    assert_eq!((look.number, look.of, look.quartets), (1, 2, 2));
    assert_eq!(figures.value("study/look_level"), Some(look.level));
    let sentence = &figures.verdict().sentence;
    for says in [
        "; 96.2% interval",
        "look 1 of 2, after 2 quartets, which settled it",
    ] {
        assert!(sentence.contains(says), "no {says:?} in {sentence}");
    }
    let table = verdict_table(&figures);
    assert!(
        table.contains("at this look a p below 0.0382 shows"),
        "{table}"
    );
    // The interval is that of the look, wider than a 95% one.
    let at = |end: &str| {
        let figure = figures.get(&format!("compare/B-over-A/decode_rate/log_ratio{end}"));
        figure.unwrap().clone()
    };
    assert!(at("_low").formula().starts_with("pair-order-t-low("));
    assert_eq!(at("_low").inputs()[0], "study/look_level");
    let sealed = writer.seal(&figures).unwrap();
    let found = audit(&sealed).unwrap();
    assert_eq!(found.mismatches, [], "{found}");

    // A session short of the look is missing, not left out by plan.
    let last = facts.sessions.last().unwrap().name();
    caught(&sealed, "a removed session", &last, |copy| {
        fs::remove_dir_all(copy.join("sessions").join(&last)).unwrap();
    });
    // Looks are part of the plan that the study file expands to.
    caught(&sealed, "another level", "plan.json looks", |copy| {
        edit(copy, "plan.json", |t| {
            t.replacen("pocock", "obrien-fleming", 1)
        });
        reseal(copy);
    });
    // Without looks the same sessions are an unfinished study.
    caught(&sealed, "no looks", "is planned but missing", |copy| {
        edit(copy, "study.toml", |t| {
            t.replacen("[looks]", "[guards_]", 1)
        });
        edit(copy, "plan.json", |t| {
            t.replacen("\"looks\"", "\"looks_\"", 1)
        });
    });
}

/// Facts of a study over the fixture's sessions, with `lines` in its study file and plan.
fn facts(lines: &str) -> (tempfile::TempDir, Facts) {
    let root = tempfile::tempdir().unwrap();
    let coins = [true, false, true, true];
    let path = crate::archive_fixture::sealed(root.path(), &coins);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    let (top, looks) = lines.split_once("[looks]").unwrap_or((lines, ""));
    let text = format!("{top}\n{}", crate::archive_fixture::study(&coins));
    let text = match looks {
        "" => text,
        looks => format!("{text}\n[looks]{looks}"),
    };
    facts.study_toml = text.into_bytes();
    facts.plan.looks = study_looks(&facts);
    (root, facts)
}

fn study_looks(facts: &Facts) -> Option<palindrome_harness::study::Looks> {
    let text = String::from_utf8_lossy(&facts.study_toml);
    let path = std::path::Path::new("study.toml");
    palindrome_harness::study::StudyFile::parse(path, &text)
        .unwrap()
        .looks
}

#[test]
fn the_first_look_that_settles_ends_it_and_an_open_one_does_not() {
    // B is slower by far: settled at once.
    let (_root, mut seen) = facts("[looks]\nat = [2, 3, 4]\n");
    assert_eq!(ended_by_look(&seen), Some(2));
    // A margin that the effect lies on is not.
    let ratio = derive(&seen)
        .value("compare/B-over-A/decode_rate/ratio")
        .unwrap();
    let margin = format!("margin = {}\n[looks]\nat = [2, 3, 4]\n", 1.0 - ratio);
    let (_root, open) = facts(&margin);
    assert_eq!(ended_by_look(&open), None);
    let figures = derive(&open);
    let look = figures.look().unwrap();
    assert_eq!((look.number, look.of), (3, 3));
    assert_eq!(figures.ended_early(), None);
    assert_eq!(figures.interval_title(), "95.6% interval");
    assert!(figures.verdict().sentence.contains("the last one"));
    // Without looks nothing is looked at before the end.
    let (_root, none) = facts("");
    assert_eq!(ended_by_look(&none), None);
    assert_eq!(derive(&none).interval_title(), "95% interval");
    // A look is at whole quartets.
    seen.sessions.truncate(6);
    assert_eq!(ended_by_look(&seen), None);
}

#[test]
fn looks_that_cannot_be_are_refused_where_they_stand() {
    let refused = |looks: &str| {
        let tail = format!("[looks]\n{looks}\n");
        let bench = Bench::new("quartets = 4", &tail, &[QUICK, QUICK]);
        match Study::load(&bench.folder.path().join("study.toml")) {
            Ok(_) => panic!("{looks:?} was accepted"),
            Err(error) => error.to_string(),
        }
    };
    for (looks, says) in [
        ("at = [2, 3]", "the study has 4 quartets and ends with them"),
        ("at = [1, 4]", "one quartet gives no interval to look at"),
        ("at = [3, 2, 4]", "looks follow each other"),
        ("at = []", "the study has 4 quartets"),
        (
            "at = [2, 4]\nspending = \"all\"",
            "looks.spending = \"all\" is unknown: give one of obrien-fleming, pocock",
        ),
        (
            "at = [2, 4]\nspend = \"pocock\"",
            "did you mean `spending`?",
        ),
    ] {
        let message = refused(looks);
        assert!(message.contains(says), "no {says:?} in {message}");
    }
    let message = refused("at = [1, 4]");
    assert!(message.contains(":17:6: looks.at = [1, 4]"), "{message}");
}
