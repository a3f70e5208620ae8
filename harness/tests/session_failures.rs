//! Servers that misbehave: each is a clear error, nothing is lost, and the study can go on.

mod common;

use common::{Bench, events, is_alive};
use palindrome_harness::archive::ArchiveWriter;
use palindrome_harness::cli::Exit;
use palindrome_harness::session::RunError;

const FAST: &str = "[[reply]]\nprompt_ms = 1\ntokens = 3\ngap_ms = 1\n";

/// Runs a study whose second arm answers as given; returns the error's text after checking what
/// holds for every failure: exit 96, the archive resumable, the evidence in it, no server left.
fn broken_by(reply: &str, tail: &str) -> String {
    let bench = Bench::new("", tail, &[FAST, reply]);
    let error = bench.fail();
    assert_eq!(error.exit(), Exit::Server, "{error}");
    let archive = error.resumable().unwrap();
    let events = events(archive);
    let (kind, detail) = events.last().unwrap();
    assert_eq!(kind, "session-failed");
    if let Some(pid) = detail["evidence"]["launch"]["pid"].as_u64() {
        assert!(!is_alive(pid), "the server outlived its failed session");
        assert!(
            !detail["evidence"]["requests"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
    let finished = ArchiveWriter::resume(archive)
        .unwrap()
        .finished_sessions()
        .unwrap();
    let committed = events
        .iter()
        .filter(|(k, _)| k == "session-committed")
        .count();
    assert_eq!(finished.len(), committed);
    assert!(finished.iter().all(|s| s.arm == "A"));
    error.to_string()
}

#[test]
fn a_server_that_dies_in_mid_stream() {
    let message = broken_by("[[reply]]\ntokens = 9\ncut_after = 4\nend = \"die\"\n", "");
    assert!(
        message.contains("the server died (exit code 9)"),
        "{message}"
    );
    assert!(
        message.contains("mock: dying mid-stream as scripted"),
        "{message}"
    );
}

#[test]
fn streams_that_end_wrongly() {
    let reply = |end: &str| format!("[[reply]]\ntokens = 4\nend = \"{end}\"\n");
    let message = broken_by(&reply("truncate"), "");
    assert!(
        message.contains("ended without a finish reason"),
        "{message}"
    );
    let message = broken_by(&reply("disconnect"), "");
    assert!(message.contains("in the middle of its answer"), "{message}");
    let message = broken_by(&reply("garbage"), "");
    assert!(message.contains("not UTF-8"), "{message}");
    let message = broken_by(&reply("bad-json"), "");
    assert!(message.contains("is not JSON"), "{message}");
    let message = broken_by(&reply("hang"), "timeout_s = 0.3\n");
    assert!(message.contains("time ran out"), "{message}");
}

#[test]
fn a_refusal_and_an_undeclared_cache_hit() {
    let message = broken_by("[[reply]]\nstatus = 400\n", "");
    assert!(
        message.contains("HTTP 400: refused as scripted"),
        "{message}"
    );
    let cached = "[[reply]]\ncached_tokens = 4\n";
    let message = broken_by(cached, "");
    assert!(
        message.contains("4 prompt tokens came from the server's cache; the study declares none"),
        "{message}"
    );
    let message = broken_by(cached, "expect_cached = \"prefix\"\n");
    assert!(
        message.contains("none before the first request"),
        "{message}"
    );
    let warm_later = "[[reply]]\n[[reply]]\ncached_tokens = 4\n";
    let bench = Bench::new("", "expect_cached = \"prefix\"\n", &[FAST, warm_later]);
    bench.run().unwrap();
}

#[test]
fn servers_that_never_become_ready() {
    let message = broken_by("die_before_ready = true\n", "");
    assert!(
        message.contains("ended before it was ready (exit code 3)"),
        "{message}"
    );
    assert!(message.contains("mock: dying as scripted"), "{message}");
    let message = broken_by(
        "ready_after_ms = 60000\n",
        "[server]\nready_timeout_s = 0.3\n",
    );
    assert!(message.contains("was not ready after"), "{message}");
    assert!(message.contains("/health answered 503"), "{message}");
    let bench = Bench::new("", "", &[FAST, "no_such_key = 1\n"]);
    let message = bench.fail().to_string();
    assert!(
        message.contains("no_such_key"),
        "the end of the server's log is missing: {message}"
    );
}

#[test]
fn a_failed_study_goes_on_where_it_stopped() {
    let mut bench = Bench::new("", "", &[FAST, "[[reply]]\nstatus = 503\n"]);
    let archive = bench.fail().resumable().unwrap().clone();
    bench.options.resume = Some(archive.clone());
    // The study and its bodies are as they were; only the server is mended.
    bench.script("B", FAST);
    let writer = bench.run().unwrap();
    assert_eq!(writer.path(), archive.canonicalize().unwrap());
    assert_eq!(writer.finished_sessions().unwrap().len(), 5);
    let kinds: Vec<String> = events(&archive).into_iter().map(|(k, _)| k).collect();
    assert_eq!(kinds.iter().filter(|k| *k == "session-failed").count(), 1);
    assert_eq!(kinds.iter().filter(|k| *k == "resumed").count(), 1);
    drop(writer);

    std::fs::write(bench.folder.path().join("two.json"), "{\"stream\": true}").unwrap();
    let error = bench.fail();
    assert!(matches!(error, RunError::OtherStudy { .. }), "{error}");
    assert_eq!(error.exit(), Exit::Usage);
    assert!(
        error.to_string().contains("a request body has changed"),
        "{error}"
    );
}

#[test]
fn a_study_does_not_go_on_on_another_machine() {
    let mut bench = Bench::new("", "", &[FAST, "[[reply]]\nstatus = 503\n"]);
    let archive = bench.fail().resumable().unwrap().clone();
    let host = archive.join("host.json");
    let mut facts: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&host).unwrap()).unwrap();
    facts["logical_cpus"] = 4096.into();
    std::fs::write(&host, facts.to_string()).unwrap();
    bench.options.resume = Some(archive);
    bench.script("B", FAST);
    let error = bench.fail();
    assert_eq!(error.exit(), Exit::Usage);
    let said = error.to_string();
    assert!(
        said.contains("another machine (logical_cpus was 4096, here it is "),
        "{said}"
    );
}
