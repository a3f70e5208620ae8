//! Both arms on one server, switched between their settings inside each session.

use std::fs;

use palindrome_harness::archive::{Archive, Facts, session_folder_name};
use palindrome_harness::audit::audit;
use palindrome_harness::derive::{Figures, derive};
use palindrome_harness::report::write;
use palindrome_harness::study::Study;

use crate::archive_fixture::forge::{caught, edit, reseal};
use crate::common::{Bench, events};
use crate::support::Done;

const SCRIPT: &str =
    "settings = { fast = 1.0, slow = 1.5 }\n[[reply]]\nprompt_ms = 8\ntokens = 6\ngap_ms = 6\n";
const FIELDS: [&str; 2] = [
    "switch = { fields = { setting = \"fast\" } }",
    "switch = { fields = { setting = \"slow\" } }",
];
const CALLS: [&str; 2] = [
    "switch = { post = \"/setting\", json = { setting = \"fast\" } }",
    "switch = { post = \"/setting\", json = { setting = \"slow\" } }",
];

/// A bench whose study is paired: one mock, the arms `plain` and `slow`.
fn bench([first, second]: [&str; 2], more: &str) -> Bench {
    let bench = Bench::new("", "", &[SCRIPT]);
    let study = format!(
        "name = \"paired\"\nquartets = 2\nburn_in = false\nidentity = \"exact\"\n\
         [[arm]]\nname = \"plain\"\nkind = \"mock\"\nscript = \"A.toml\"\n{first}\n\
         [[arm]]\nname = \"slow\"\nkind = \"mock\"\nscript = \"A.toml\"\n{second}\n\
         [guards]\nallow_other_servers = true\nwait_s = 0\n\
         [workload]\nbodies = [\"one.json\", \"two.json\"]\n[protocol]\nkind = \"paired\"\n{more}"
    );
    fs::write(bench.folder.path().join("study.toml"), study).unwrap();
    bench
}

fn done(switches: [&str; 2]) -> Done {
    let bench = bench(switches, "");
    let writer = bench.run().unwrap();
    let facts = Archive::open(writer.path()).unwrap().facts().unwrap();
    let figures = derive(&facts);
    let path = writer.seal(&figures).unwrap();
    let found = audit(&path).unwrap();
    assert_eq!(found.mismatches, [], "{found}");
    Done {
        bench,
        path,
        facts,
        figures,
    }
}

fn refused(switches: [&str; 2], change: impl FnOnce(String) -> String) -> String {
    let bench = bench(switches, "");
    let path = bench.folder.path().join("study.toml");
    let text = change(fs::read_to_string(&path).unwrap());
    fs::write(&path, text).unwrap();
    match Study::load(&path) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error.to_string(),
    }
}

/// The study timed exactly: so long from token to token and to the first one, by arm.
fn timed(facts: &Facts, ms: impl Fn(&str, usize) -> f64) -> Figures {
    let mut facts = facts.clone();
    for (nth, session) in facts.sessions.iter_mut().enumerate() {
        for request in &mut session.requests {
            let arm = facts.plan.protocol.arm_of(&request.body).unwrap();
            let gap = ms(arm, nth);
            let after = |ms: f64| request.sent_ns + (ms * 1e6).round() as u64;
            let (first, last) = (after(gap), after(6.0 * gap));
            request.first_byte_ns = Some(first);
            request.first_token_ns = Some(first);
            request.first_content_ns = Some(first);
            request.last_token_ns = Some(last);
            request.done_ns = last;
        }
    }
    derive(&facts)
}

#[test]
fn each_session_serves_both_arms_in_turns_and_is_one_observation() {
    for switches in [FIELDS, CALLS] {
        let study = done(switches);
        let ready = events(&study.path);
        let ready = ready.iter().filter(|(kind, _)| kind == "server-ready");
        assert_eq!(ready.count(), 4, "one server a session");
        let leads: Vec<&str> = study
            .facts
            .plan
            .sessions
            .iter()
            .map(|s| s.arm.as_str())
            .collect();
        assert_ne!(leads[0], leads[1]);
        assert_ne!(leads[2], leads[3]);
        for session in &study.facts.sessions {
            let lead = session.planned.arm.as_str();
            let other = if lead == "plain" { "slow" } else { "plain" };
            let bodies: Vec<&str> = session.requests.iter().map(|r| r.body.as_str()).collect();
            let expected = [("one", lead), ("one", other), ("two", other), ("two", lead)];
            assert_eq!(
                bodies,
                expected.map(|(body, arm)| format!("{body}.{arm}.json"))
            );
            assert_eq!(
                session.switches.len(),
                if switches == CALLS { 4 } else { 0 }
            );
        }
        let body = fs::read_to_string(study.path.join("workload/one.slow.json")).unwrap();
        assert_eq!(
            body.contains("\"setting\": \"slow\""),
            switches == FIELDS,
            "{body}"
        );

        // The mock really was switched: it says so of each answer.
        for request in study.facts.sessions.iter().flat_map(|s| &s.requests) {
            let said = request.engine.as_ref().unwrap().predicted_ms;
            let slow = request.body.contains(".slow.");
            assert_eq!(
                said,
                Some(if slow { 45.0 } else { 30.0 }),
                "{}",
                request.body
            );
        }
        let exact = timed(&study.facts, |arm, _| if arm == "slow" { 9.0 } else { 6.0 });
        let compared = exact.primary_comparisons().next().unwrap();
        assert_eq!(compared.pairs, 4);
        assert_eq!(compared.no_interval, None);
        let sentence = &exact.verdict().sentence;
        for says in [
            "by the median request of a session that served both",
            "over 4 sessions:",
        ] {
            assert!(sentence.contains(says), "{sentence}");
        }
        // Each half has figures of its own, the process has one set.
        let name = session_folder_name(&study.facts.plan.sessions[1]);
        for id in [
            "plain/decode_rate",
            "slow/ttft",
            "launch_to_ready",
            "host_load1",
        ] {
            assert!(
                study.figures.get(&format!("session/{name}/{id}")).is_some(),
                "{id}"
            );
        }
        assert!(study.figures.get("arm/slow/cpu").is_none());
        assert!(
            study
                .figures
                .identity()
                .iter()
                .all(|i| i.differing.is_empty())
        );
        let identity = &study.figures.identity()[1];
        assert_eq!((identity.sessions, identity.compared), (4, 2));

        let reports = study.bench.folder.path().join("reports");
        let page = write(&Archive::open(&study.path).unwrap(), &reports).unwrap();
        let page = fs::read_to_string(page.markdown).unwrap();
        for says in [
            "Protocol: paired in session.",
            &format!("| {name} slow |"),
            "| 0 | one.json | slow |",
        ] {
            assert!(page.contains(says), "no {says:?} in\n{page}");
        }
    }
}

#[test]
fn a_planted_difference_is_found_exactly_and_neither_drift_nor_going_first_moves_it() {
    let study = done(FIELDS);
    let at = |figures: &Figures, name: &str| {
        let id = format!("compare/slow-over-plain/decode_rate/{name}");
        figures.value(&id).unwrap()
    };
    let slower = |arm: &str| if arm == "slow" { 1.05 } else { 1.0 };
    let figures = timed(&study.facts, |arm, _| 10.0 * slower(arm));
    assert!((at(&figures, "ratio") - 1.0 / 1.05).abs() < 1e-7);
    // Each session 30% slower than the one before it: a session is compared with itself.
    let drifting = timed(&study.facts, |arm, nth| {
        10.0 * slower(arm) * 1.3_f64.powi(nth as i32)
    });
    assert!((at(&drifting, "ratio") - 1.0 / 1.05).abs() < 1e-7);
    assert!(at(&drifting, "pair_deviation") < 1e-6);
    let nothing = timed(&study.facts, |_, _| 10.0);
    assert!((at(&nothing, "ratio") - 1.0).abs() < 1e-9);
}

#[test]
fn forged_switches_and_turns_are_caught() {
    let study = done(CALLS);
    let name = study.facts.sessions[1].name();
    let file = format!("sessions/{name}/switches.jsonl");
    caught(
        &study.path,
        "a call less",
        "switches.jsonl 3: is missing",
        |copy| {
            edit(copy, &file, |text| {
                let lines: Vec<&str> = text.lines().collect();
                lines[..3].join("\n") + "\n"
            });
            reseal(copy);
        },
    );
    caught(&study.path, "another setting", "expected", |copy| {
        edit(copy, &file, |text| text.replacen("fast", "slow", 1));
        reseal(copy);
    });
    caught(
        &study.path,
        "a call too late",
        "was not made between",
        |copy| {
            let sent = study.facts.sessions[1].switches[0].done_ns;
            edit(copy, &file, |text| {
                text.replacen(
                    &format!("\"done_ns\":{sent}"),
                    &format!("\"done_ns\":{}", sent + 1_000_000_000),
                    1,
                )
            });
            reseal(copy);
        },
    );
    caught(&study.path, "the other arm's body", "body", |copy| {
        edit(copy, &format!("sessions/{name}/requests.jsonl"), |text| {
            let (one, other) = ("one.plain.json", "one.slow.json");
            text.replace(one, "?")
                .replace(other, one)
                .replace('?', other)
        });
        reseal(copy);
    });
}

#[test]
fn a_switch_that_fails_ends_the_session() {
    let unknown = "switch = { post = \"/setting\", json = { setting = \"none\" } }";
    let error = bench([CALLS[0], unknown], "").fail().to_string();
    assert!(
        error.contains("the switch to arm slow failed: HTTP 400"),
        "{error}"
    );
}

#[test]
fn what_a_paired_study_cannot_be_is_refused_where_it_stands() {
    let same = |text| text;
    for (switches, says) in [
        ([FIELDS[0], ""], "arm \"slow\" has no `switch`"),
        ([FIELDS[0], "switch = {}"], "a switch is `{ fields ="),
        (
            [FIELDS[0], "switch = { post = \"setting\" }"],
            "must start with `/`",
        ),
        (
            [FIELDS[0], "switch = { fields = { stream = false } }"],
            "has a field \"stream\" already",
        ),
        (
            [FIELDS[0], "threads = 3\nswitch = { fields = {} }"],
            "are one server: they differ in",
        ),
    ] {
        let message = refused(switches, same);
        assert!(message.contains(says), "{says}: {message}");
    }
    let message = refused(FIELDS, |text| {
        text.replace("kind = \"paired\"", "kind = \"fresh\"")
    });
    assert!(
        message.contains("`switch` is for protocols of kind paired"),
        "{message}"
    );
    let third = "[[arm]]\nname = \"third\"\nkind = \"mock\"\nscript = \"A.toml\"\n[guards]";
    let message = refused(FIELDS, |text| text.replace("[guards]", third));
    assert!(
        message.contains("has two arms; this study has 3"),
        "{message}"
    );
}
