//! What the client itself costs, in CPU time, which other work on the machine does not lengthen as
//! it does wall time: under a hundredth of the gap between tokens at 10,000 tokens a second.

mod common;

use std::fs::File;
use std::time::Duration;

use common::Bench;
use palindrome_harness::archive::Archive;
use palindrome_harness::derive::derive;
use palindrome_harness::replay::{
    ClientCost, Request, RequestHeader, RequestRecord, send_with_workers,
};
use palindrome_harness::server::{HashCache, ServerKind, ServerProcess};

/// Between two tokens of a stream of 10,000 a second.
const GAP_NS: f64 = 100_000.0;
const STREAMS: usize = 64;
const TOKENS: u64 = 2_000;
const TRIES: usize = 3;

#[test]
fn to_stamp_and_store_an_event_costs_under_a_hundredth_of_a_gap() {
    let cost = ClientCost::measure();
    println!("{cost:?}");
    assert!(cost.stamp_and_store_ns > 0.0);
    assert!(cost.stamp_and_store_ns < GAP_NS / 100.0, "{cost:?}");
    let with_read = cost.with_read_ns.expect("a loopback socket");
    assert!(with_read > cost.stamp_and_store_ns, "{cost:?}");
}

/// 64 streams of 10,000 tokens a second each, written every 4 ms: the client reads about 16,000
/// times a second and takes in up to 640,000 events. Its CPU time, the system's part included, over
/// the gaps that the script has (not those of a mock that a busy machine holds up); the least of a
/// few tries, because what else the machine does only ever adds to it.
#[test]
fn sixty_four_streams_of_ten_thousand_tokens_a_second_cost_under_a_hundredth_of_their_gaps() {
    let script =
        format!("[[reply]]\nprompt_ms = 50\ntokens = {TOKENS}\ngap_ms = 0.1\nwrite_every_ms = 4\n");
    let bench = Bench::new("", "", &[&script, &script]);
    let study = bench.study();
    let log_path = bench.folder.path().join("server.log");
    let log = File::create(&log_path).unwrap();
    let mut hashes = HashCache::open(bench.options.hash_cache.clone(), false);
    let (server, _) = ServerProcess::launch(
        &study.arms[0],
        &bench.options.programs,
        &study.server,
        &mut hashes,
        (&log, &log_path),
        &|| false,
    )
    .unwrap();
    let request = Request {
        port: server.port(),
        path: "/v1/chat/completions",
        body: Some(b"{}"),
        timeout: Duration::from_mins(1),
    };
    let requests = vec![request; STREAMS];
    let tries = std::iter::repeat_with(|| cost_share(&requests)).take(TRIES);
    let share = tries.reduce(f64::min).unwrap();
    server.stop(Duration::from_secs(5));
    assert!(share > 0.0 && share < 0.01, "{share}");
}

/// The client's CPU time over the script's gaps.
fn cost_share(requests: &[Request<'_>]) -> f64 {
    let responses = send_with_workers(requests, STREAMS, &|| false).unwrap();
    let mut spent_ns = 0;
    for raw in responses.iter().map(|r| r.as_ref().unwrap()) {
        let record = RequestRecord::assemble(RequestHeader::default(), raw, ServerKind::Mock);
        assert_eq!(
            (record.error, record.generated_tokens),
            (None, Some(TOKENS))
        );
        spent_ns += raw.client_cpu_ns.unwrap();
    }
    let gaps_ns = (STREAMS as u64 * (TOKENS - 1)) as f64 * GAP_NS;
    let share = spent_ns as f64 / gaps_ns;
    println!(
        "64 streams: the client's CPU time is {:.2}% of their token gaps",
        share * 100.0
    );
    share
}

#[test]
fn the_share_is_a_figure_of_every_session_and_arm() {
    let script = "[[reply]]\nprompt_ms = 1\ntokens = 4\ngap_ms = 5\n";
    let tail = "[protocol]\nkind = \"cohort\"\n";
    for tail in ["", tail] {
        let bench = Bench::new("burn_in = false", tail, &[script, script]);
        let writer = bench.run().unwrap();
        let facts = Archive::open(writer.path()).unwrap().facts().unwrap();
        let figures = derive(&facts);
        let value = |id: &str| figures.value(id).unwrap_or_else(|| panic!("no {id}"));
        for session in &facts.sessions {
            let scope = format!("session/{}", session.name());
            let (mut cpu, mut streams) = (0.0, 0.0);
            for r in &session.requests {
                cpu += r.client_cpu_ns.unwrap() as f64 / 1e9;
                streams += (r.last_token_ns.unwrap() - r.first_token_ns.unwrap()) as f64 / 1e9;
            }
            let share = value(&format!("{scope}/client_cost_share"));
            assert!((share / (cpu / streams) - 1.0).abs() < 1e-9, "{share}");
            assert_eq!(
                figures.get(&format!("{scope}/client_cores")).is_some(),
                !tail.is_empty()
            );
        }
        assert!(value("arm/A/client_cost_share") > 0.0);
        // An older archive, whose records do not state it, has no such figures.
        let mut older = facts.clone();
        for session in &mut older.sessions {
            session
                .requests
                .iter_mut()
                .for_each(|r| r.client_cpu_ns = None);
        }
        let older = derive(&older);
        assert!(older.all().iter().all(|f| !f.id().contains("client_c")));
    }
}
