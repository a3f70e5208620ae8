//! Times of answers, in new archives and in older ones.

use palindrome_harness::archive::Archive;
use palindrome_harness::audit::audit;

use crate::archive_fixture::sealed;
use crate::common::Bench;
use crate::support::run_and_seal;

#[test]
fn archives_from_before_have_none_of_this() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let figures = Archive::open(&path).unwrap().figures().unwrap().unwrap();
    assert!(figures.settings().is_empty() && figures.noise().is_empty());
    assert!(
        !figures
            .all()
            .iter()
            .any(|f| f.id().contains("energy") || f.id().contains("itl"))
    );
}

#[test]
fn requests_one_at_a_time_have_all_times_of_their_answers() {
    let script = "[[reply]]\nprompt_ms = 2\ntokens = 5\nreasoning_tokens = 2\ngap_ms = 2\n";
    let bench = Bench::new("burn_in = false", "", &[script, script]);
    let (archive, figures) = run_and_seal(&bench);
    let session = archive.facts().unwrap().sessions[0].name();
    let at = |metric: &str| figures.value(&format!("session/{session}/{metric}"));
    let (byte, token, content) = (at("first_byte"), at("ttft"), at("first_content"));
    assert!(
        byte < token && token < content,
        "{byte:?} {token:?} {content:?}"
    );
    assert!(at("tpot").is_some_and(|s| s > 0.0));
    assert!(at("itl").is_some_and(|s| s > 0.0));
    assert_eq!(at("itl_p90"), None, "two requests bound no percentile");
    assert!(audit(archive.path()).unwrap().passed());
}
