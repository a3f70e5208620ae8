//! A whole mirrored study over real processes and sockets, its order of events asserted exactly.

mod common;

use common::{Bench, events, lines};
use palindrome_harness::archive::Archive;
use palindrome_harness::derive::{HashKind, derive};
use palindrome_harness::replay::{RequestRecord, TokenSource, token_hash};

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

#[test]
fn prompt_ids_are_asked_for_after_the_replay_where_answers_show_none() {
    let llama = format!("dialect = \"llama-cpp\"\n{FAST}");
    let without = format!("dialect = \"llama-cpp\"\nno_prompt_routes = true\n{FAST}");
    let bench = Bench::new("burn_in = false", "", &[&llama, &without]);
    let writer = bench.run().unwrap();
    let archive = Archive::open(writer.path()).unwrap();
    let facts = archive.facts().unwrap();
    for session in &facts.sessions {
        let stopped = session.end.ended_ns;
        assert!(session.requests.iter().all(|r| r.done_ns < stopped));
        assert!(session.requests.iter().all(|r| r.prompt_hash.is_none()));
        assert_eq!(session.prompts.len(), 2);
        let hashes: Vec<_> = session
            .requests
            .iter()
            .map(|r| session.prompt_hash(r))
            .collect();
        if session.planned.arm == "A" {
            let ids: Vec<u32> = "[1]".bytes().map(u32::from).collect();
            assert_eq!(hashes[1], Some(token_hash(&ids).as_str()));
            assert_ne!(hashes[0], hashes[1]);
        } else {
            assert_eq!(hashes, [None, None]);
            assert_eq!(
                session.prompts[0].template.as_ref().unwrap().status,
                Some(404)
            );
        }
    }
    let identity = derive(&facts).identity().to_vec();
    let prompts = |arms: &[&str]| {
        let found = identity
            .iter()
            .find(|i| i.arms == arms && i.kind == HashKind::Prompt);
        found.unwrap().equal()
    };
    assert_eq!(prompts(&["A"]), Some(true));
    assert_eq!(prompts(&["B"]), None);
    // The posts of a replay are still the only ones that the script answers.
    assert_eq!(
        archive.plan().bodies.len(),
        facts.sessions[0].requests.len()
    );
}

#[test]
fn arms_on_one_model_must_be_given_one_prompt_where_the_study_declares_it() {
    let llama = format!("dialect = \"llama-cpp\"\n{FAST}");
    for (declared, required) in [("prompt-only", true), ("exact", true), ("none", false)] {
        let head = format!("burn_in = false\nidentity = \"{declared}\"");
        let bench = Bench::new(&head, "", &[&llama, FAST]);
        let writer = bench.run().unwrap();
        let figures = derive(&Archive::open(writer.path()).unwrap().facts().unwrap());
        let broken: Vec<_> = figures.identity_broken().collect();
        assert_eq!(!broken.is_empty(), required, "{declared}");
        for found in broken {
            assert_eq!((found.kind, found.arms.len()), (HashKind::Prompt, 2));
        }
    }
}
