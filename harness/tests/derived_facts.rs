//! What figures and verdict make of a study's declarations and of what servers leave unsaid.

mod archive_fixture;

use archive_fixture::{sealed, study};
use palindrome_harness::archive::Archive;
use palindrome_harness::derive::{derive, three_digits};

#[test]
fn the_verdict_is_about_the_metric_that_the_study_declares() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true, false]);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    for (metric, says) in [
        ("decode_rate", "B generated tokens at 0."),
        ("prompt_rate", "B read prompts at 0."),
        ("ttft", "B took 2."),
        ("client_wall", "B took 2."),
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
