//! Requests at scheduled times, answered or not; latencies from the schedule; goodput.

use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::audit::audit;
use palindrome_harness::derive::{Label, Metric, derive};
use palindrome_harness::report::write;
use palindrome_harness::study::{Plan, Study};

use crate::archive_fixture::forge::{caught, edit, reseal};
use crate::common::Bench;
use crate::support::{Done, done, refused};

/// 4 ms to the first token, then 2 ms a token: 18 ms in all.
const QUICK: &str = "[[reply]]\nprompt_ms = 4\ntokens = 8\ngap_ms = 2\n";
/// 60 ms to the first token: beyond the limit below.
const SLOW: &str = "[[reply]]\nprompt_ms = 60\ntokens = 8\ngap_ms = 2\n";

fn tail(more: &str) -> String {
    format!(
        "expect_cached = \"any\"\n[protocol]\nkind = \"open-loop\"\nrates_rps = [20, 100.5]\nrequests = [4, 12]\nseed = 5\n{more}"
    )
}

fn open(scripts: &[&str]) -> Done {
    let limits = "[limits]\nttft_s = 0.04\ntpot_s = 0.5\n";
    done("burn_in = false", &tail(limits), scripts)
}

#[test]
fn requests_go_at_the_plans_times_and_latencies_run_from_them() {
    let study = open(&[QUICK, SLOW]);
    let plan = &study.facts.plan;
    let steps = plan.steps();
    assert_eq!(steps.len(), 16);
    for session in &study.facts.sessions {
        let name = session.name();
        for (level, requests) in [("r20", 0..4), ("r100.5", 4..16)] {
            let starts: Vec<u64> = requests
                .clone()
                .map(|i| session.requests[i].due_ns.unwrap() - steps[i].due_ns.unwrap())
                .collect();
            assert!(
                starts.windows(2).all(|w| w[0] == w[1]),
                "one start: {starts:?}"
            );
            let mut late = 0.0_f64;
            for i in requests.clone() {
                let r = &session.requests[i];
                let due = r.due_ns.unwrap();
                assert!(r.sent_ns >= due);
                assert_eq!(r.phase.as_deref(), Some(level));
                let at = |metric: &str| study.value(&format!("request/{name}/{i:03}/{metric}"));
                let seconds = |from: u64, to: u64| (to as f64 - from as f64) / 1e9;
                assert_eq!(at("ttft"), seconds(due, r.first_token_ns.unwrap()));
                assert_eq!(at("client_wall"), seconds(due, r.done_ns));
                assert_eq!(at("late"), seconds(due, r.sent_ns));
                late = late.max(at("late"));
            }
            let at = |metric: &str| study.value(&format!("session/{name}/{level}/{metric}"));
            assert_eq!(at("late_most"), late);
            let here = &session.requests[requests];
            let first = here.iter().map(|r| r.due_ns.unwrap()).min().unwrap();
            let last = here.iter().map(|r| r.done_ns).max().unwrap();
            let wall = (last as f64 - first as f64) / 1e9;
            assert_eq!(at("level_wall"), wall);
            assert_eq!(at("goodput"), at("good_requests") / wall);
        }
        // Whether others are answered makes no difference: at 100 a second they overlap.
        let overlaps = session.requests[4..]
            .windows(2)
            .filter(|w| w[1].sent_ns < w[0].done_ns)
            .count();
        assert!(overlaps > 0, "never two in flight in {name}");
    }
    // 60 ms are beyond the limit of 40; 4 ms are not, but on a machine that stands still.
    for level in ["r20", "r100.5"] {
        assert_eq!(study.value(&format!("arm/B/{level}/good_share")), 0.0);
        assert!(study.value(&format!("arm/A/{level}/good_share")) > 0.5);
        assert_eq!(study.value(&format!("arm/B/{level}/goodput")), 0.0);
    }
    let limit = study.figures.get("study/limit_ttft").unwrap();
    assert_eq!((limit.value(), limit.label()), (Some(0.04), Label::Assumed));
    assert_eq!(study.figures.primary(), Metric::Goodput);
    // No good request in B: there is no logarithm of the ratio, and that is said.
    let sentence = &study.figures.verdict().sentence;
    let says = "B and A could not be compared by goodput: 2 of 2 pairs lack this metric";
    assert!(sentence.starts_with(says), "{sentence}");
    let ratio = study.value("compare/B-over-A/r20/ttft/ratio");
    assert!(ratio > 1.5, "{ratio}");
    let reports = study.bench.folder.path().join("reports");
    let page = write(&Archive::open(&study.path).unwrap(), &reports).unwrap();
    let page = std::fs::read_to_string(page.markdown).unwrap();
    for says in [
        "times of a Poisson process (seed 5), the same in every session",
        "4 requests at 20 a second, 12 requests at 100.5 a second",
        "at most a time to first token of 0.04 s and a time per output token of 0.5 s",
        "| 20 requests/s: Goodput, requests/s |",
        "Client late, median s",
    ] {
        assert!(page.contains(says), "no {says:?} in\n{page}");
    }
}

#[test]
fn the_schedule_is_the_seeds_and_in_the_plan() {
    let plan = |tail: &str| {
        let bench = Bench::new("", tail, &[QUICK, QUICK]);
        serde_json::to_value(Plan::of(&bench.study())).unwrap()
    };
    let written = plan(&tail(""));
    let due = |plan: &serde_json::Value, phase: usize| -> Vec<u64> {
        let requests = plan["phases"][phase]["requests"].as_array().unwrap();
        requests
            .iter()
            .map(|r| r["due_ns"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(written["phases"][1]["way"], "timed");
    assert_eq!((due(&written, 0).len(), due(&written, 1).len()), (4, 12));
    assert_eq!(written, plan(&tail("")));
    assert_ne!(
        due(&written, 0),
        due(&plan(&tail("").replace("seed = 5", "seed = 9")), 0)
    );
    assert!(due(&written, 1).windows(2).all(|w| w[0] <= w[1]));
}

#[test]
fn forged_schedules_are_caught_although_every_hash_matches() {
    let study = open(&[QUICK, QUICK]);
    let session = &study.facts.sessions[1];
    let file = format!("sessions/{}/requests.jsonl", session.name());
    let due = session.requests[5].due_ns.unwrap();
    for (what, to, says) in [
        ("later", due + 1, "5/due_ns: found"),
        ("not at all", 0, "5/due_ns: found 0, expected"),
    ] {
        caught(&study.path, what, says, |copy| {
            edit(copy, &file, |t| {
                t.replacen(&format!("\"due_ns\":{due}"), &format!("\"due_ns\":{to}"), 1)
            });
            reseal(copy);
        });
    }
    let offset = study.facts.plan.steps()[5].due_ns.unwrap();
    caught(&study.path, "the plan's time", "plan.json phases", |copy| {
        edit(copy, "plan.json", |t| {
            t.replacen(&format!("\"due_ns\": {offset}"), "\"due_ns\": 1", 1)
        });
        reseal(copy);
    });
    caught(
        &study.path,
        "the plan's limit",
        "plan.json protocol",
        |copy| {
            edit(copy, "plan.json", |t| {
                t.replacen("\"ttft_s\": 0.04", "\"ttft_s\": 0.4", 1)
            });
            reseal(copy);
        },
    );
    caught(
        &study.path,
        "a good request",
        "within_limits value",
        |copy| {
            edit(copy, "figures.json", |t| {
                let at = t.find("/001/within_limits").unwrap();
                let (before, after) = t.split_at(at);
                let value = if after.find("1.0") < after.find("0.0") {
                    ("1.0", "0.0")
                } else {
                    ("0.0", "1.0")
                };
                before.to_owned() + &after.replacen(value.0, value.1, 1)
            });
            reseal(copy);
        },
    );
}

#[test]
fn a_failed_request_ends_its_level_and_the_study_goes_on_later() {
    let bad = "[[reply]]\n[[reply]]\nstatus = 503\n";
    let tail = "[protocol]\nkind = \"open-loop\"\nrates_rps = [150.25]\nrequests = 12\n";
    let mut bench = Bench::new("burn_in = false", tail, &[QUICK, bad]);
    let error = bench.fail();
    assert!(
        error.to_string().contains("HTTP 503: refused as scripted"),
        "{error}"
    );
    bench.options.resume = error.resumable().cloned();
    bench.script("B", QUICK);
    let writer = bench.run().unwrap();
    assert_eq!(writer.finished_sessions().unwrap().len(), 4);
    let figures = derive(&Archive::open(writer.path()).unwrap().facts().unwrap());
    let path = writer.seal(&figures).unwrap();
    assert_eq!(audit(&path).unwrap().mismatches, []);
}

#[test]
fn a_client_that_fell_behind_is_said_to_have() {
    let study = done("burn_in = false", &tail(""), &[QUICK, QUICK]);
    let mut facts = study.facts.clone();
    let said = |facts: &Facts| {
        let warnings = derive(facts).verdict().warnings.clone();
        let late = warnings
            .into_iter()
            .filter(|w| w.contains("after its time"));
        late.filter(|w| w.starts_with("At 20 requests/s"))
            .collect::<Vec<_>>()
    };
    for session in &mut facts.sessions {
        for r in &mut session.requests {
            r.sent_ns = r.due_ns.unwrap();
        }
    }
    assert_eq!(said(&facts), [""; 0]);
    let request = &mut facts.sessions[1].requests[2];
    request.sent_ns = request.due_ns.unwrap() + 250_000_000;
    let found = said(&facts);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("up to 0.250 s after its time in 1 scored session(s)"),
        "{found:?}"
    );
}

#[test]
fn what_an_open_loop_cannot_be_is_refused_where_it_stands() {
    let of = |more: &str| refused("", &format!("kind = \"open-loop\"\n{more}"));
    for (more, says) in [
        (
            "requests = 3",
            "kind open-loop needs `rates_rps`, such as `rates_rps = [0.5, 1, 2]`",
        ),
        ("rates_rps = [1]", "kind open-loop needs `requests`"),
        (
            "rates_rps = [1, 1]\nrequests = 3",
            "lists its levels, each once",
        ),
        (
            "rates_rps = [0]\nrequests = 3",
            "a rate of 0 requests a second is out of range",
        ),
        (
            "rates_rps = [nan]\nrequests = 3",
            "a rate of NaN requests a second is out of range",
        ),
        (
            "rates_rps = [1]\nrequests = 3\n[limits]",
            "no limit is given: give `ttft_s`, `tpot_s`, or both",
        ),
        (
            "rates_rps = [1]\nrequests = 3\n[limits]\nttft_s = 0",
            "limits.ttft_s = 0 is out of range: give more than 0",
        ),
        (
            "rates_rps = [1]\nrequests = 3\nconcurrency = [1]",
            "`concurrency` is for protocols of kind closed-loop; this one is open-loop",
        ),
        (
            "rates_rps = [1, 2.5]\nrequests = 3\nprimary_level = 2",
            "primary_level = 2 is no level; give one of 1, 2.5",
        ),
    ] {
        let message = of(more);
        assert!(message.contains(says), "{more}: {message}");
    }
    let message = refused("", "kind = \"fresh\"\n[limits]\nttft_s = 1");
    assert!(
        message.contains(
            "`[limits]` is for protocols of kind open-loop or arrivals; this one is fresh"
        ),
        "{message}"
    );
    let bench = Bench::new("", "[limits]\nttft_s = 1\n", &[QUICK, QUICK]);
    let message = Study::load(&bench.folder.path().join("study.toml")).unwrap_err();
    assert!(
        message
            .to_string()
            .contains("this study has no `[protocol]`"),
        "{message}"
    );
}
