//! A whole mirrored study over real processes and sockets, its order of events asserted exactly.

mod common;

use common::{Bench, events, lines};
use palindrome_harness::replay::{RequestRecord, TokenSource};

const FAST: &str = "[[reply]]\nprompt_ms = 1\ntokens = 3\ngap_ms = 1\n";

/// One line an event: its kind, and what tells it from its like.
fn story(archive: &std::path::Path) -> Vec<String> {
    events(archive)
        .into_iter()
        .map(|(kind, detail)| {
            let session = detail["session"].as_str().unwrap_or("");
            let more = detail["body"]
                .as_str()
                .or(detail["mode"].as_str())
                .unwrap_or("");
            format!("{kind} {session} {more}").trim().to_owned()
        })
        .collect()
}

#[test]
fn a_mirrored_study_runs_in_exactly_the_plans_order() {
    let bench = Bench::new("seed = 7", "warmups = [\"one.json\"]\n", &[FAST, FAST]);
    let archive = bench.run().unwrap();
    let coin = archive.plan().coins[0];
    let order = if coin {
        ["A", "A", "B", "B", "A"]
    } else {
        ["A", "B", "A", "A", "B"]
    };
    let mut expected = vec!["archive-created".to_owned()];
    for (index, arm) in order.iter().enumerate() {
        let name = format!("{index:02}-{arm}");
        expected.extend([
            format!("guard-passed {name}"),
            format!("session-begun {name}"),
            format!("server-ready {name}"),
            format!("request {name} one.json"),
            format!("request {name} one.json"),
            format!("request {name} two.json"),
            format!("server-stopped {name} terminated"),
            format!("session-committed {name}"),
        ]);
    }
    expected.push("sessions-complete".to_owned());
    assert_eq!(story(archive.path()), expected);

    let mut pids = Vec::new();
    for (index, arm) in order.iter().enumerate() {
        let folder = archive.path().join(format!("sessions/{index:02}-{arm}"));
        let records: Vec<RequestRecord> = lines(&folder.join("requests.jsonl"));
        let scored: Vec<bool> = records.iter().map(|r| r.scored).collect();
        assert_eq!(scored, [false, true, true]);
        for record in &records {
            assert_eq!(record.error, None);
            assert_eq!(record.generated_tokens, Some(3));
            assert_eq!(record.token_source, Some(TokenSource::StreamIds));
            assert!(
                record.prompt_hash.is_some() && record.generated_hash == records[0].generated_hash
            );
        }
        let launch: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("launch.json")).unwrap()).unwrap();
        assert_eq!(launch["command"][1], "mock-server");
        assert_eq!(launch["binary"]["sha256"].as_str().unwrap().len(), 64);
        assert!(!launch["libraries"].as_array().unwrap().is_empty());
        pids.push(launch["pid"].as_u64().unwrap());
        assert!(
            std::fs::read_to_string(folder.join("server.log"))
                .unwrap()
                .contains("mock: listening")
        );
        assert!(
            !std::fs::read_to_string(folder.join("host.jsonl"))
                .unwrap()
                .is_empty()
        );
    }
    assert!(
        pids.iter().all(|pid| !common::is_alive(*pid)),
        "a server outlived its session"
    );
    pids.dedup();
    assert_eq!(pids.len(), 5, "each session has a server of its own");
}
