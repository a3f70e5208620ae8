//! The client's clock against the mock's: both are the machine's monotonic clock, so the mock can
//! say exactly when it wrote what the client then stamped.

mod common;

use common::{Bench, lines};
use palindrome_harness::replay::RequestRecord;

const TWO_MS: f64 = 2.0;

fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty());
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Milliseconds from the mock's word to the client's.
fn late(client_ns: Option<u64>, mock_ns: u64) -> f64 {
    (client_ns.unwrap() as f64 - mock_ns as f64) / 1e6
}

/// Times in a mock's log after a phrase.
fn announced(log: &str, phrase: &str) -> Vec<u64> {
    log.lines()
        .filter_map(|l| {
            l.split_once(phrase)?
                .1
                .split_whitespace()
                .last()?
                .parse()
                .ok()
        })
        .collect()
}

#[test]
fn the_clients_times_are_the_mocks_within_two_milliseconds() {
    let script = "[[reply]]\nprompt_ms = 30\ntokens = 7\nreasoning_tokens = 2\nper_chunk = 2\ngap_ms = 10\nstalls = [[2, 25]]\n";
    let split = format!("{script}split_bytes = 9\n");
    let bench = Bench::new("quartets = 2", "", &[script, &split]);
    let text = std::fs::read_to_string(bench.folder.path().join("study.toml")).unwrap();
    std::fs::write(
        bench.folder.path().join("study.toml"),
        text.replacen("quartets = 1\n", "", 1),
    )
    .unwrap();
    let archive = bench.run().unwrap();
    let mut against_log: [Vec<f64>; 3] = Default::default();
    let mut transit = Vec::new();
    for session in std::fs::read_dir(archive.path().join("sessions")).unwrap() {
        let folder = session.unwrap().path();
        let log = std::fs::read_to_string(folder.join("server.log")).unwrap();
        let firsts = announced(&log, "mock: chunk 0 written");
        let contents = announced(&log, "mock: chunk 1 written");
        let lasts = announced(&log, "mock: chunk 3 written");
        let reads = announced(&log, "mock: post ");
        let records: Vec<RequestRecord> = lines(&folder.join("requests.jsonl"));
        assert_eq!(records.len(), firsts.len());
        for (i, record) in records.iter().enumerate() {
            assert_eq!(record.generated_tokens, Some(7));
            assert_eq!(record.first_event_tokens, Some(2));
            let times = [
                record.first_token_ns,
                record.first_content_ns,
                record.last_token_ns,
            ];
            for (k, (time, written)) in times
                .iter()
                .zip([firsts[i], contents[i], lasts[i]])
                .enumerate()
            {
                against_log[k].push(late(*time, written));
            }
            transit.push(late(Some(reads[i]), record.sent_ns));
            // Two tokens at 30 ms, two at 40, two at 75 after the stall, the last at 85. The mock
            // may be late on a busy machine (its log says how late) but it is never early.
            for (k, (time, at_ms)) in times.iter().zip([30.0, 40.0, 85.0]).enumerate() {
                let early = at_ms - late(*time, record.sent_ns);
                assert!(early < 0.001, "event {k} came {early} ms before its time");
            }
            assert!(record.sent_ns < firsts[i] && record.first_byte_ns <= record.first_token_ns);
            assert!(record.last_token_ns.unwrap() <= record.done_ns);
        }
    }
    for (k, name) in ["first token", "first content", "last token"]
        .iter()
        .enumerate()
    {
        let written = median(against_log[k].clone());
        assert!(
            (0.0..TWO_MS).contains(&written),
            "{name}: {written:.3} ms after the mock wrote it"
        );
    }
    let transit = median(transit);
    assert!(
        (0.0..TWO_MS).contains(&transit),
        "{transit:.3} ms from the client's send to the mock's read"
    );
}
