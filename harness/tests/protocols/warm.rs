//! Declared warm-ups, then scored prompts that must be cold.

use palindrome_harness::archive::Archive;
use palindrome_harness::report::write;
use palindrome_harness::study::Study;

use crate::common::Bench;
use crate::support::done;

const WARM: &str = "[protocol]\nkind = \"warm\"\n";

/// Two warm-ups, the second from the cache, then two scored prompts.
fn warming(scored: &str) -> String {
    format!(
        "[[reply]]\nprompt_ms = 150\ngap_ms = 1\n[[reply]]\ncached_tokens = 4\ngap_ms = 1\n{}",
        format!("[[reply]]\nprompt_ms = 5\ngap_ms = 1\n{scored}\n").repeat(2)
    )
}

#[test]
fn warm_ups_are_discarded_and_may_use_the_cache() {
    let tail = format!("warmups = [\"one.json\", \"one.json\"]\n{WARM}");
    let study = done("burn_in = false", &tail, &[&warming(""), &warming("")]);
    for session in &study.facts.sessions {
        let told: Vec<(&str, bool)> = session
            .requests
            .iter()
            .map(|r| (r.phase.as_deref().unwrap(), r.scored))
            .collect();
        assert_eq!(
            told,
            [
                ("warm-up", false),
                ("warm-up", false),
                ("replay", true),
                ("replay", true)
            ]
        );
        let name = session.name();
        // The slow warm-up is in no figure of the session.
        assert!(study.value(&format!("session/{name}/ttft")) < 0.1);
        assert_eq!(
            study.value(&format!("session/{name}/generated_tokens")),
            16.0
        );
        assert!(study.value(&format!("session/{name}/tpot")) < 0.04);
        assert_eq!(session.requests[2].token_gaps_ns.len(), 7);
    }
    let reports = study.bench.folder.path().join("reports");
    let page = write(&Archive::open(&study.path).unwrap(), &reports).unwrap();
    let page = std::fs::read_to_string(page.markdown).unwrap();
    let says = "Protocol: warm. In each session 2 warm-ups came first, recorded and discarded; then 2 requests";
    assert!(page.contains(says), "{page}");
}

#[test]
fn a_scored_prompt_from_the_cache_fails_the_session() {
    let tail = format!("warmups = [\"one.json\", \"one.json\"]\n{WARM}");
    let cached = warming("cached_tokens = 3");
    let error = Bench::new("burn_in = false", &tail, &[&cached, &cached]).fail();
    let says = "request 2 (one.json): 3 prompt tokens came from the server's cache; the study declares none";
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn a_warm_protocol_needs_warm_ups_and_cold_prompts() {
    let refused = |tail: &str| {
        let bench = Bench::new("", tail, &["[[reply]]\n", "[[reply]]\n"]);
        let study = Study::load(&bench.folder.path().join("study.toml"));
        study.unwrap_err().to_string()
    };
    let message = refused(WARM);
    assert!(
        message.contains("a warm protocol has warm-ups"),
        "{message}"
    );
    let tail = format!("warmups = [\"one.json\"]\nexpect_cached = \"any\"\n{WARM}");
    let message = refused(&tail);
    assert!(message.contains("leave `expect_cached` out"), "{message}");
}
