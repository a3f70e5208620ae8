//! What figures and verdict make of a study's declarations and of what servers leave unsaid.

mod archive_fixture;

use archive_fixture::{sealed, study};
use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::derive::{Figures, Label, Metric, derive, detectable, three_digits};
use palindrome_harness::replay::TokenSource;
use palindrome_harness::study::Protocol;

#[test]
fn the_verdict_is_about_the_metric_that_the_study_declares() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true, false]);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    for (metric, says) in [
        ("decode_rate", "B generated tokens at 0."),
        ("prompt_rate", "B read prompts at 0."),
        ("ttft", "B took 2."),
        (
            "client_wall",
            "B took 1.98 times as long as A to a whole answer",
        ),
    ] {
        let text = format!("primary = \"{metric}\"\n{}", study(&[true, false]));
        facts.study_toml = text.into_bytes();
        let figures = derive(&facts);
        assert_eq!(figures.primary().key(), metric);
        let sentence = &figures.verdict().sentence;
        assert!(sentence.contains(says), "{sentence}");
        let ratio = figures
            .value(&format!("compare/B-over-A/{metric}/ratio"))
            .unwrap();
        assert!(sentence.contains(&three_digits(ratio)), "{sentence}");
    }
}

#[test]
fn the_quotient_of_totals_stands_apart_from_the_ratio_and_a_contradiction_is_said() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true, false]);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    let figures = derive(&facts);
    for &metric in Metric::of(&Protocol::Fresh) {
        let at = |id: String| figures.value(&id).unwrap();
        let arm = |arm: &str| at(format!("arm/{arm}/{}", metric.key()));
        let id = format!("compare/B-over-A/{}/quotient_of_totals", metric.key());
        assert_eq!(at(id), arm("B") / arm("A"));
    }
    assert!(!figures.verdict().sentence.contains("opposite"));
    // Of two requests the short one is slower with B and the long one faster: (tokens, A, B) in ms.
    for session in &mut facts.sessions {
        let b = session.planned.arm == "B";
        for (r, (tokens, of_a, of_b)) in session
            .requests
            .iter_mut()
            .zip([(4, 4, 10), (100, 100, 50)])
        {
            r.generated_tokens = Some(tokens + 1);
            r.first_event_tokens = Some(1);
            let first = r.first_token_ns.unwrap();
            r.last_token_ns = Some(first + if b { of_b } else { of_a } * 1_000_000);
        }
    }
    let figures = derive(&facts);
    let sentence = &figures.verdict().sentence;
    // sqrt(4/10 * 100/50), and 104 tokens in 60 ms against 104 in 104.
    assert!(sentence.contains("0.894 times the rate of A"), "{sentence}");
    let totals = "1733 against 1000 tokens a second, 1.73 times. The two point opposite ways";
    assert!(sentence.contains(totals), "{sentence}");
}

#[test]
fn a_first_event_of_unknown_size_is_assumed_and_said() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    let id = "request/02-B/000/first_event_tokens";
    let told = derive(&facts);
    assert_eq!(told.get(id).unwrap().label(), Label::Measured);
    let said = |figures: &Figures| {
        let warnings = &figures.verdict().warnings;
        warnings.iter().any(|w| w.contains("one is assumed"))
    };
    assert!(!said(&told));
    for session in facts.sessions.iter_mut().filter(|s| s.planned.arm == "B") {
        session.requests[0].first_event_source = Some(TokenSource::Events);
    }
    let assumed = derive(&facts);
    assert_eq!(assumed.get(id).unwrap().label(), Label::Assumed);
    assert!(said(&assumed), "{:?}", assumed.verdict().warnings);
}

#[test]
fn the_engines_own_decode_count_is_a_difference_by_its_convention() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let figures = derive(&Archive::open(&path).unwrap().facts().unwrap());
    let at = |name: &str| figures.get(&format!("request/{name}"));
    let stated = at("01-A/000/engine_decode_tokens").unwrap();
    let timed = at("01-A/000/engine_decode_tokens_after_first").unwrap();
    assert_eq!(
        (stated.value(), stated.label()),
        (Some(5.0), Label::Measured)
    );
    assert_eq!(
        (timed.value(), timed.label()),
        (Some(4.0), Label::Calculated)
    );
    assert_eq!(timed.inputs(), [stated.id()]);
    let rate = at("01-A/000/engine_decode_rate_n_minus_1").unwrap();
    assert_eq!(rate.inputs()[0], timed.id());
    let llama = at("02-B/000/engine_decode_rate_n").unwrap();
    assert_eq!(llama.inputs()[0], "request/02-B/000/engine_decode_tokens");
    assert!(at("02-B/000/engine_decode_tokens_after_first").is_none());
}

#[test]
fn an_unstated_cache_is_not_shown_rather_than_cold() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    let said = |facts: &Facts| {
        let figures = derive(facts);
        let warnings = &figures.verdict().warnings;
        warnings
            .iter()
            .filter(|w| w.contains("is not shown"))
            .count()
    };
    assert_eq!(said(&facts), 0);
    // Request 1 of arm B, in both of its sessions.
    for session in facts.sessions.iter_mut().filter(|s| s.planned.arm == "B") {
        session.requests[1].cached_tokens = None;
    }
    assert_eq!(said(&facts), 1);
    let prefix = study(&[true]) + "expect_cached = \"prefix\"\n";
    facts.study_toml = prefix.into_bytes();
    assert_eq!(said(&facts), 0, "later requests may use the cache");
    facts.sessions[0].requests[0].cached_tokens = None;
    assert_eq!(said(&facts), 1);
}

#[test]
fn what_a_study_can_see_is_known_from_its_plan() {
    assert!(detectable(2).contains("no difference is detected"));
    assert!(detectable(6).contains(" is 1.5"), "{}", detectable(6));
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true, false]);
    let figures = derive(&Archive::open(&path).unwrap().facts().unwrap());
    assert_eq!(figures.value("study/pairs"), Some(4.0));
    let effect = figures.value("study/detectable_effect").unwrap();
    assert!((effect - 2.83).abs() < 0.02, "{effect}");
}

#[test]
fn a_machine_with_other_work_is_said_to_have_had_it() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    let said = |facts: &Facts| {
        let warnings = derive(facts).verdict().warnings.clone();
        warnings.into_iter().find(|w| w.contains("had other work"))
    };
    assert_eq!(said(&facts), None);
    // The burn-in does not count.
    for sample in &mut facts.sessions[0].samples {
        sample.load1 = Some(9.0);
    }
    assert_eq!(said(&facts), None);
    for sample in &mut facts.sessions[2].samples {
        sample.load1 = Some(9.58);
    }
    let warning = said(&facts).unwrap();
    assert!(
        warning.contains("above 3 in 1 scored session(s), at most 9.6 on 2"),
        "{warning}"
    );
}
