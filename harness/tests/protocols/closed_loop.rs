//! Levels of workers, each taking the next body when it has its answer.

use palindrome_harness::archive::Archive;
use palindrome_harness::derive::Metric;
use palindrome_harness::report::{verdict_table, write};
use palindrome_harness::stats::median;

use crate::archive_fixture::forge::{caught, edit, reseal};
use crate::common::Bench;
use crate::support::{Done, done, refused};

const QUICK: &str = "[[reply]]\nprompt_ms = 4\ntokens = 6\ngap_ms = 2\n";
const SLOW: &str = "[[reply]]\nprompt_ms = 12\ntokens = 6\ngap_ms = 6\n";

fn looped(requests: &str, scripts: &[&str]) -> Done {
    let tail = format!(
        "expect_cached = \"any\"\n[protocol]\nkind = \"closed-loop\"\nconcurrency = [1, 3]\nrequests = {requests}\n"
    );
    done("burn_in = false", &tail, scripts)
}

#[test]
fn each_level_does_its_requests_with_so_many_workers() {
    let study = looped("[4, 31]", &[QUICK, SLOW]);
    for session in &study.facts.sessions {
        let name = session.name();
        let (one, three) = session.requests.split_at(4);
        assert_eq!(three.len(), 31);
        for (level, requests, most) in [("c1", one, 1), ("c3", three, 3)] {
            let bodies: Vec<&str> = requests.iter().map(|r| r.body.as_str()).collect();
            let expected = ["one.json", "two.json"].into_iter().cycle();
            assert_eq!(bodies, expected.take(requests.len()).collect::<Vec<_>>());
            let in_flight = |at: u64| {
                let here = requests.iter();
                here.filter(|r| r.sent_ns <= at && at < r.done_ns).count()
            };
            let most_seen = requests.iter().map(|r| in_flight(r.sent_ns)).max();
            assert_eq!(most_seen, Some(most), "{level} of {name}");
            let at = |metric: &str| study.value(&format!("session/{name}/{level}/{metric}"));
            let begin = requests.iter().map(|r| r.sent_ns).min().unwrap();
            let end = requests.iter().map(|r| r.done_ns).max().unwrap();
            let wall = (end - begin) as f64 / 1e9;
            assert_eq!(at("level_wall"), wall);
            assert_eq!(at("throughput"), 6.0 * requests.len() as f64 / wall);
            assert_eq!(at("requests_per_second"), requests.len() as f64 / wall);
            assert!(at("in_flight") <= most as f64, "{}", at("in_flight"));
            let first: Vec<f64> = requests
                .iter()
                .map(|r| (r.first_token_ns.unwrap() - r.sent_ns) as f64 / 1e9)
                .collect();
            assert_eq!(Some(at("ttft")), median(&first));
            let gaps: Vec<f64> = requests
                .iter()
                .flat_map(|r| &r.token_gaps_ns)
                .map(|ns| *ns as f64 / 1e9)
                .collect();
            assert_eq!(gaps.len(), 5 * requests.len());
            assert_eq!(Some(at("itl")), median(&gaps));
        }
        // 31 requests bound a p90 and no p95; 20 gaps of 4 requests bound none.
        let get = |metric: &str| {
            study
                .figures
                .get(&format!("session/{name}/{metric}"))
                .unwrap()
        };
        for metric in ["c3/ttft_p90", "c3/tpot_p90", "c3/itl_p90"] {
            assert!(get(metric).value().is_some(), "{metric}");
        }
        for metric in ["c3/ttft_p95", "c3/itl_p95", "c1/ttft_p90", "c1/itl_p90"] {
            assert_eq!(get(metric).value(), None, "{metric}");
        }
    }
    assert_eq!(study.figures.primary(), Metric::Throughput);
    // Both levels, and the last is what the study is about.
    for level in ["c1", "c3"] {
        let ratio = study.value(&format!("compare/B-over-A/{level}/throughput/ratio"));
        assert!((0.15..0.8).contains(&ratio), "{level}: {ratio}");
    }
    let sentence = &study.figures.verdict().sentence;
    let says = "On this host and workload at concurrency 3 B generated tokens at 0.";
    assert!(sentence.starts_with(says), "{sentence}");
    let table = verdict_table(&study.figures);
    assert!(
        table.contains("concurrency 1: Throughput, tok/s"),
        "{table}"
    );
    let reports = study.bench.folder.path().join("reports");
    let page = write(&Archive::open(&study.path).unwrap(), &reports).unwrap();
    let page = std::fs::read_to_string(page.markdown).unwrap();
    for says in [
        "4 requests by 1, 31 requests by 3. A level's clock",
        "| concurrency 3: Between events with tokens | A | ",
        "throughput at concurrency 3 as its primary metric",
    ] {
        assert!(page.contains(says), "no {says:?} in\n{page}");
    }
}

#[test]
fn the_level_that_a_study_is_about_can_be_named() {
    let study = looped("3\nprimary_level = 1", &[QUICK, SLOW]);
    let sentence = &study.figures.verdict().sentence;
    assert!(sentence.contains("at concurrency 1 B"), "{sentence}");
    let primary: Vec<_> = study.figures.primary_comparisons().collect();
    assert_eq!(primary.len(), 1);
    assert_eq!(primary[0].prefix, "compare/B-over-A/c1/throughput");
    assert_eq!(primary[0].pair_ratios(&study.figures).count(), 2);
}

#[test]
fn more_in_flight_than_workers_is_caught() {
    let study = looped("3", &[QUICK, QUICK]);
    let session = study.facts.sessions[1].name();
    let stream = study.facts.sessions[1].requests[2].stream.clone();
    let says = "c1: found 2 requests in flight at once, expected 1 at most";
    caught(&study.path, "overlap", says, |copy| {
        // The third request is said to have been sent before the second one ended.
        let sent = study.facts.sessions[1].requests[2].sent_ns;
        let earlier = study.facts.sessions[1].requests[1].sent_ns + 1;
        let change = |t: &str| {
            let (from, to) = (
                format!("\"sent_ns\":{sent}"),
                format!("\"sent_ns\":{earlier}"),
            );
            t.replacen(&from, &to, 1)
        };
        edit(copy, &format!("sessions/{session}/requests.jsonl"), change);
        let arrivals = format!("sessions/{session}/streams/{stream}.arrivals.json");
        edit(copy, &arrivals, change);
        reseal(copy);
    });
    caught(&study.path, "a gap", "token_gaps_ns", |copy| {
        edit(copy, &format!("sessions/{session}/requests.jsonl"), |t| {
            t.replacen("\"token_gaps_ns\":[", "\"token_gaps_ns\":[1,", 1)
        });
        reseal(copy);
    });
}

#[test]
fn a_level_stops_at_its_first_failure() {
    let bad = "[[reply]]\n[[reply]]\nstatus = 503\n";
    let tail = "[protocol]\nkind = \"closed-loop\"\nconcurrency = [2]\nrequests = 40\n";
    let error = Bench::new("burn_in = false", tail, &[bad, bad]).fail();
    assert!(
        error.to_string().contains("HTTP 503: refused as scripted"),
        "{error}"
    );
}

#[test]
fn what_a_loop_cannot_be_is_refused_where_it_stands() {
    let of = |more: &str| refused("", &format!("kind = \"closed-loop\"\n{more}"));
    for (more, says) in [
        (
            "requests = 3",
            "kind closed-loop needs `concurrency`, such as `concurrency = [1, 4, 16]`",
        ),
        ("concurrency = [1]", "needs `requests`"),
        (
            "concurrency = []\nrequests = 3",
            "lists its levels, each once",
        ),
        (
            "concurrency = [2, 2]\nrequests = 3",
            "lists its levels, each once",
        ),
        (
            "concurrency = [0]\nrequests = 3",
            "concurrency 0 is out of range: give 1 to 1024",
        ),
        (
            "concurrency = [4]\nrequests = 3",
            "requests = 3 at concurrency 4: a level has at least",
        ),
        (
            "concurrency = [1, 2]\nrequests = [3]",
            "requests has 1 numbers for 2 levels",
        ),
        (
            "concurrency = [1, 2]\nrequests = 3\nprimary_level = 3",
            "primary_level = 3 is no level; give one of 1, 2",
        ),
        (
            "concurrency = [1]\nrequests = \"many\"",
            "give a whole number, or a list of them with one a level",
        ),
        (
            "concurrency = [1]\nrequests = 3\ncopies = 2",
            "`copies` is for protocols of kind cohort; this one is closed-loop",
        ),
    ] {
        let message = of(more);
        assert!(message.contains(says), "{more}: {message}");
    }
}
