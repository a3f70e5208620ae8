//! Bodies at the times at which they were recorded.

use palindrome_harness::archive::Archive;
use palindrome_harness::derive::Metric;
use palindrome_harness::report::write;

use crate::archive_fixture::forge::{caught, edit, reseal};
use crate::support::{done, refused};

const QUICK: &str = "[[reply]]\nprompt_ms = 4\ntokens = 8\ngap_ms = 2\n";

#[test]
fn bodies_go_at_their_times_and_are_measured_like_an_open_loop() {
    let tail = "expect_cached = \"any\"\n[protocol]\nkind = \"arrivals\"\narrivals_s = [0, 0.05]\nspeed = 2\n[limits]\nttft_s = 5\n";
    let study = done("burn_in = false", tail, &[QUICK, QUICK]);
    let due: Vec<Option<u64>> = study.facts.plan.steps().iter().map(|s| s.due_ns).collect();
    assert_eq!(due, [Some(0), Some(25_000_000)]);
    for session in &study.facts.sessions {
        let at: Vec<u64> = session.requests.iter().map(|r| r.due_ns.unwrap()).collect();
        assert_eq!(at[1] - at[0], 25_000_000);
        assert!(
            session
                .requests
                .iter()
                .all(|r| r.sent_ns >= r.due_ns.unwrap())
        );
        let scope = format!("session/{}/recorded", session.name());
        assert_eq!(study.value(&format!("{scope}/good_requests")), 2.0);
    }
    assert_eq!(study.figures.primary(), Metric::Goodput);
    assert_eq!(study.value("arm/A/recorded/good_share"), 1.0);
    study.value("compare/B-over-A/recorded/ttft/ratio");
    let page = write(
        &Archive::open(&study.path).unwrap(),
        &study.bench.folder.path().join("reports"),
    )
    .unwrap();
    let page = std::fs::read_to_string(page.markdown).unwrap();
    for says in [
        "the 2 bodies were sent in order, each at the time after the start at which it was recorded (over 0.025 s",
        "at most a time to first token of 5 s",
        "| recorded times: Goodput, requests/s |",
    ] {
        assert!(page.contains(says), "no {says:?} in\n{page}");
    }
    caught(&study.path, "the plan's time", "plan.json", |copy| {
        edit(copy, "plan.json", |t| t.replace("25000000", "24000000"));
        reseal(copy);
    });
}

#[test]
fn times_that_do_not_fit_the_bodies_are_refused_where_they_stand() {
    for (keys, says) in [
        (
            "",
            "kind arrivals needs `arrivals_s`, such as `arrivals_s = [0, 0.5, 2.25]`",
        ),
        (
            "arrivals_s = [0]",
            "arrivals_s has 1 times for 2 bodies: give one a body",
        ),
        ("arrivals_s = [1, 0.5]", "goes back in time"),
        ("arrivals_s = [-1, 0]", "a time of -1 s is out of range"),
        (
            "arrivals_s = [0, 1]\nspeed = 0",
            "speed = 0 is out of range",
        ),
        (
            "arrivals_s = [0, 1]\nrates_rps = [1]",
            "`rates_rps` is for protocols of kind open-loop",
        ),
    ] {
        let error = refused("", &format!("kind = \"arrivals\"\n{keys}"));
        assert!(error.contains(says), "{error}");
    }
    let error = refused("", "kind = \"fresh\"\nspeed = 2");
    assert!(
        error.contains("`speed` is for protocols of kind arrivals; this one is fresh"),
        "{error}"
    );
}
