//! All bodies at once, one clock over them, and the same bodies alone afterwards.

use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::derive::{Label, Metric, derive};
use palindrome_harness::report::{verdict_table, write};
use palindrome_harness::study::{Plan, Role};

use crate::archive_fixture::forge::{caught, edit, reseal};
use crate::common::{Bench, events};
use crate::support::{Done, done, refused};

const QUICK: &str = "[[reply]]\nprompt_ms = 60\ntokens = 8\ngap_ms = 2\n";
const SLOW: &str = "[[reply]]\nprompt_ms = 180\ntokens = 8\ngap_ms = 10\n";
const ALONE: &str = "[protocol]\nkind = \"cohort\"\ncopies = 2\ncompare_alone = true\n";

fn cohort(scripts: &[&str]) -> Done {
    done("burn_in = false\nidentity = \"exact\"", ALONE, scripts)
}

#[test]
fn a_cohort_is_in_flight_together_and_its_clock_runs_over_all_of_it() {
    let study = cohort(&[QUICK, SLOW]);
    for session in &study.facts.sessions {
        let name = session.name();
        let phases: Vec<&str> = session
            .requests
            .iter()
            .map(|r| r.phase.as_deref().unwrap())
            .collect();
        assert_eq!(
            phases,
            ["cohort", "cohort", "cohort", "cohort", "alone", "alone"]
        );
        let (together, alone) = session.requests.split_at(4);
        let sent = || together.iter().map(|r| r.sent_ns);
        let done = || together.iter().map(|r| r.done_ns);
        assert!(
            sent().max() < done().min(),
            "not in flight together in {name}"
        );
        assert!(done().max().unwrap() <= alone[0].sent_ns && alone[0].done_ns <= alone[1].sent_ns);
        assert!(together.iter().all(|r| r.scored) && alone.iter().all(|r| !r.scored));
        let at = |metric: &str| study.value(&format!("session/{name}/{metric}"));
        let wall = (done().max().unwrap() - sent().min().unwrap()) as f64 / 1e9;
        assert_eq!(at("cohort_wall"), wall);
        assert_eq!(at("cohort_tokens"), 32.0);
        assert_eq!(at("cohort_rate"), 32.0 / wall);
        assert!(at("cohort_send_spread") < at("cohort_all_first_tokens"));
        assert!(at("cohort_all_first_tokens") < wall);
        let wall = study.figures.get(&format!("session/{name}/cohort_wall"));
        assert_eq!(wall.unwrap().label(), Label::Measured);
        // Four requests are too few for any percentile, and share the server: no prompt rate.
        let p90 = study.figures.get(&format!("session/{name}/ttft_p90"));
        assert_eq!(p90.unwrap().value(), None);
        assert!(
            study
                .figures
                .get(&format!("session/{name}/prompt_rate"))
                .is_none()
        );
    }
    assert_eq!(study.figures.primary(), Metric::CohortRate);
    // 74 ms against 250 ms and what the machine adds to each.
    let ratio = study.value("compare/B-over-A/cohort_rate/ratio");
    assert!((0.1..0.7).contains(&ratio), "{ratio}");
    let a: Vec<f64> = ["pair/00", "pair/01"]
        .map(|p| study.value(&format!("{p}/B-over-A/cohort_rate/ratio")))
        .into();
    assert!((ratio - (a[0] * a[1]).sqrt()).abs() < 1e-12);
    let broken: Vec<_> = study.figures.identity_broken().collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(study.figures.identity()[1].compared, 4);
    // Answers too short to be in flight together are named.
    let mut facts = study.facts.clone();
    let said = |facts: &Facts| {
        let warnings = derive(facts).verdict().warnings.clone();
        warnings
            .iter()
            .any(|w| w.contains("too short to be in flight together"))
    };
    assert!(!said(&facts));
    let requests = &mut facts.sessions[0].requests;
    requests[0].done_ns = requests[1].sent_ns - 1;
    requests[2].sent_ns = requests[1].sent_ns;
    assert!(said(&facts));
}

#[test]
fn answers_in_company_are_compared_with_answers_alone() {
    let alike = cohort(&[QUICK, QUICK]);
    for arm in ["A", "B"] {
        assert_eq!(alike.value(&format!("arm/{arm}/alone_compared")), 8.0);
        assert_eq!(alike.value(&format!("arm/{arm}/alone_identical")), 8.0);
        let found = alike.figures.get(&format!("arm/{arm}/alone_identical"));
        assert_eq!(found.unwrap().label(), Label::Measured);
    }
    // After the four of the cohort the server answers shorter, and from its cache: no fault of the
    // cohort's declared cold prompts.
    let parts = format!(
        "{}[[reply]]\ntokens = 5\ngap_ms = 1\ncached_tokens = 4\n",
        QUICK.repeat(4)
    );
    let apart = cohort(&[QUICK, &parts]);
    assert_eq!(apart.value("arm/A/alone_identical"), 8.0);
    assert_eq!(apart.value("arm/B/alone_identical"), 0.0);
    assert_eq!(apart.value("arm/A/alone_cached_tokens"), 0.0);
    assert_eq!(apart.value("arm/B/alone_cached_tokens"), 16.0);
    assert_eq!(apart.value("arm/B/alone_prompt_tokens"), 40.0);
    let [a, b] = apart.figures.alone() else {
        panic!("{:?}", apart.figures.alone());
    };
    assert_eq!((a.identical, b.identical), (8, 0));
    assert_eq!((&b.differing, b.unseen), (&vec![0, 1, 2, 3], 0));
    let table = verdict_table(&apart.figures);
    let line = "B: 0 M of 8 M answers in company have the generated tokens of the same request alone; alone, 16 of 40 prompt tokens from its cache";
    assert!(table.contains(line), "{table}");
    assert!(table.contains("Cohort, tok/s"), "{table}");
    let reports = apart.bench.folder.path().join("reports");
    let page = write(&Archive::open(&apart.path).unwrap(), &reports).unwrap();
    let page = std::fs::read_to_string(page.markdown).unwrap();
    for says in [
        "Protocol: a closed cohort. In each session 4 requests (2 bodies, 2 each)",
        "That B gives a request the same answer alone and in company: 8 of 8 answers",
        "| Cohort rate | ",
        "| Arm | Prompt tokens | from a cache | Generated |",
        "| A | 80 C | 0 C | 64 C |",
        "Left: each session's cohort rate",
    ] {
        assert!(page.contains(says), "no {says:?} in\n{page}");
    }
}

#[test]
fn a_cached_prompt_in_a_cohort_breaks_a_declared_cold_cache() {
    let warm = "[[reply]]\n[[reply]]\ncached_tokens = 4\n";
    let tail = "[protocol]\nkind = \"cohort\"\n";
    let bench = Bench::new("burn_in = false", tail, &[warm, warm]);
    let error = bench.fail();
    let says = "4 prompt tokens came from the server's cache; the study declares none";
    assert!(error.to_string().contains(says), "{error}");
    // Of requests sent at once none is the first, so `prefix` allows it.
    let tail = format!("expect_cached = \"prefix\"\n{tail}");
    Bench::new("burn_in = false", &tail, &[warm, warm])
        .run()
        .unwrap();
}

#[test]
fn one_failing_request_fails_the_session_with_the_others_as_evidence() {
    let tail = "[protocol]\nkind = \"cohort\"\ncopies = 3\n";
    let bad = "[[reply]]\n[[reply]]\nend = \"truncate\"\n[[reply]]\n";
    let bench = Bench::new("burn_in = false", tail, &[bad, bad]);
    let error = bench.fail();
    assert!(
        error.to_string().contains("ended without a finish reason"),
        "{error}"
    );
    let events = events(error.resumable().unwrap());
    let (kind, detail) = events.last().unwrap();
    assert_eq!(kind, "session-failed");
    let requests = detail["evidence"]["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 6);
    let failed = requests.iter().filter(|r| !r["error"].is_null()).count();
    assert_eq!(failed, 1);
}

#[test]
fn forged_cohorts_are_caught_although_every_hash_matches() {
    let study = cohort(&[QUICK, QUICK]);
    let scored = study.facts.sessions.iter();
    let session = scored
        .filter(|s| s.planned.role == Role::Scored)
        .map(palindrome_harness::archive::SessionFacts::name)
        .next()
        .unwrap();
    let requests = format!("sessions/{session}/requests.jsonl");
    caught(&study.path, "phase", "0/phase", |copy| {
        edit(copy, &requests, |t| {
            t.replacen("\"cohort\"", "\"alone\"", 1)
        });
        reseal(copy);
    });
    caught(&study.path, "scored", "4/scored", |copy| {
        edit(copy, &requests, |t| {
            t.replacen("\"scored\":false", "\"scored\":true", 1)
        });
        reseal(copy);
    });
    caught(&study.path, "clock", "/done_ns", |copy| {
        let last = study.facts.sessions.iter().find(|s| s.name() == session);
        let last = last.unwrap().requests[..4].iter().map(|r| r.done_ns).max();
        let (from, to) = (last.unwrap(), last.unwrap() - 1_000_000);
        edit(copy, &requests, |t| {
            t.replacen(
                &format!("\"done_ns\":{from}"),
                &format!("\"done_ns\":{to}"),
                1,
            )
        });
        reseal(copy);
    });
    for (what, from, to) in [
        ("protocol", "\"copies\": 2", "\"copies\": 1"),
        (
            "protocol",
            "\"compare_alone\": true",
            "\"compare_alone\": false",
        ),
        ("phases", "\"way\": \"together\"", "\"way\": \"one-by-one\""),
    ] {
        caught(&study.path, to, &format!("plan.json {what}"), |copy| {
            edit(copy, "plan.json", |t| t.replacen(from, to, 1));
            reseal(copy);
        });
    }
    caught(&study.path, "identical", "figures.json alone", |copy| {
        edit(copy, "figures.json", |t| {
            t.replacen("\"identical\": 8", "\"identical\": 7", 1)
        });
        reseal(copy);
    });
    caught(
        &study.path,
        "a count of its own",
        "arm/A/alone_identical value",
        |copy| {
            edit(copy, "figures.json", |t| {
                let at = t.find("arm/A/alone_identical").unwrap();
                let (before, after) = t.split_at(at);
                before.to_owned() + &after.replacen("8.0", "7.0", 1)
            });
            reseal(copy);
        },
    );
}

#[test]
fn what_a_cohort_cannot_be_is_refused_where_it_stands() {
    let message = refused("", "kind = \"cohort\"\ncopies = 0");
    assert!(message.contains(": copies = 0 of 2 bodies"), "{message}");
    assert!(message.contains("give 1 to 512"), "{message}");
    let message = refused("", "kind = \"fresh\"\ncopies = 2");
    let says = "`copies` is for protocols of kind cohort; this one is fresh";
    assert!(message.contains(says), "{message}");
    let message = refused("", "kind = \"choir\"");
    assert!(
        message.contains(
            "protocol.kind = \"choir\" is unknown: give one of fresh, warm, paired, cohort"
        ),
        "{message}"
    );
    let message = refused("", "kind = \"cohort\"\ncopy = 2");
    assert!(message.ends_with("did you mean `copies`?"), "{message}");
    let message = refused("primary = \"prompt_rate\"", "kind = \"cohort\"");
    let says = "study.toml:3:11: primary = \"prompt_rate\" is not a metric of this protocol; give one of cohort_rate, cohort_wall";
    assert!(message.contains(says), "{message}");
    let message = refused("primary = \"cohort_rate\"", "kind = \"fresh\"");
    assert!(message.contains("give one of decode_rate"), "{message}");
}

#[test]
fn the_plan_says_every_request_before_the_first_session() {
    let tail = format!("warmups = [\"one.json\"]\n{ALONE}");
    let bench = Bench::new("", &tail, &[QUICK, QUICK]);
    let plan = Plan::of(&bench.study());
    let told: Vec<String> = plan
        .steps()
        .iter()
        .map(|s| format!("{} {} {}", s.index, s.phase.as_deref().unwrap(), s.body))
        .collect();
    assert_eq!(
        told,
        [
            "0 warm-up one.json",
            "1 cohort one.json",
            "2 cohort two.json",
            "3 cohort one.json",
            "4 cohort two.json",
            "5 alone one.json",
            "6 alone two.json",
        ]
    );
    let written = serde_json::to_value(&plan).unwrap();
    assert_eq!(written["phases"][1]["way"], "together");
    assert_eq!(written["protocol"]["kind"], "cohort");
}
