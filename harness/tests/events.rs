//! `run --json`: what happens, a line each, for programs; and what people are told meanwhile.

mod common;

use std::process::{Command, Output, Stdio};

use common::Bench;
use serde_json::Value;

const QUICK: &str = "[[reply]]\nprompt_ms = 2\ntokens = 5\ngap_ms = 2\n";

fn run(bench: &Bench, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palindrome"));
    command
        .arg("run")
        .arg(bench.folder.path().join("study.toml"))
        .args(["--yes", "--json", "--out"])
        .arg(&bench.options.archives)
        .args(more)
        .env("PALINDROME_CACHE", bench.folder.path().join("cache"))
        .env("PALINDROME_LOCK", bench.folder.path().join("lock"))
        .stdin(Stdio::null());
    command.output().unwrap()
}

fn told(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect()
}

#[test]
fn a_study_is_told_from_its_plan_to_its_seal() {
    let bench = Bench::new("burn_in = false\nquartets = 2", "", &[QUICK, QUICK]);
    let ran = run(&bench, &[]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let events = told(&ran);
    let session = [
        "session-started",
        "request-finished",
        "request-finished",
        "session-ended",
    ];
    let mut expected = vec!["study-started"];
    expected.extend(session.repeat(8));
    expected.extend(["verdict", "study-sealed"]);
    assert_eq!(names(&events), expected);

    let first = &events[0];
    assert_eq!(first["schema"], "1.0");
    assert_eq!(first["arms"], serde_json::json!(["A", "B"]));
    assert_eq!(first["sessions"].as_array().unwrap().len(), 8);
    let order: Vec<&Value> = events
        .iter()
        .filter(|e| e["event"] == "session-started")
        .map(|e| &e["session"])
        .collect();
    assert_eq!(
        order,
        first["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .collect::<Vec<_>>()
    );
    let request = &events[2];
    assert_eq!(request["body"], "one.json");
    assert_eq!(request["generated_tokens"], 5);
    assert!(
        request["first_token_s"].as_f64().unwrap() >= 0.002,
        "{request}"
    );
    assert!(request["decode_rate"].as_f64().unwrap() > 0.0, "{request}");
    assert_eq!(request["error"], Value::Null);

    let [.., verdict, sealed] = events.as_slice() else {
        panic!("too few events");
    };
    let decode = &verdict["comparisons"][0];
    assert_eq!(decode["metric"], "decode_rate");
    assert!(decode["ratio_low"].as_f64().unwrap() < decode["ratio"].as_f64().unwrap());
    assert_eq!(sealed["verdict"]["sentence"], verdict["sentence"]);
    assert_eq!(sealed["exit"], 0);
    let archive = std::path::Path::new(sealed["archive"].as_str().unwrap());
    assert!(archive.join("SEAL").exists());
    assert_eq!(first["archive"], sealed["archive"]);

    // People read standard error: a plain line a step where there is no terminal.
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("[1/8] "), "{said}");
    assert!(said.contains(": request 2/2: two.json"), "{said}");
    assert!(said.contains(": done; about "), "{said}");
    assert!(
        !said.contains('\u{1b}'),
        "no terminal, no control characters: {said}"
    );
}

#[test]
fn a_study_that_stops_says_so_last_and_the_rest_is_told_when_it_goes_on() {
    let bad = "[[reply]]\nstatus = 503\n";
    let bench = Bench::new("burn_in = false\nseed = 7", "", &[QUICK, bad]);
    let ran = run(&bench, &[]);
    assert_eq!(ran.status.code(), Some(96), "{ran:?}");
    let events = told(&ran);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["exit"]),
        (&"study-stopped".into(), &96.into())
    );
    assert!(
        last["reason"].as_str().unwrap().contains("--resume"),
        "{last}"
    );
    let failed = &events[events.len() - 2];
    assert_eq!(failed["event"], "request-finished");
    assert!(
        failed["error"].as_str().unwrap().contains("503"),
        "{failed}"
    );

    bench.script("B", QUICK);
    let ended = names(&events)
        .iter()
        .filter(|n| **n == "session-ended")
        .count();
    let ran = run(
        &bench,
        &["--resume", events[0]["archive"].as_str().unwrap()],
    );
    let again = told(&ran);
    assert_eq!(again[0]["finished"].as_array().unwrap().len(), ended);
    assert_eq!(
        names(&again)
            .iter()
            .filter(|n| **n == "session-ended")
            .count(),
        4 - ended
    );
    assert_eq!(names(&again).last(), Some(&"study-sealed"));
}

#[test]
fn a_study_goes_on_when_nobody_reads_its_events() {
    let bench = Bench::new("burn_in = false", "", &[QUICK, QUICK]);
    let shell = "\"$0\" run \"$1\" --yes --json --out \"$2\" | head -n 1";
    let ran = Command::new("sh")
        .args(["-c", shell, env!("CARGO_BIN_EXE_palindrome")])
        .arg(bench.folder.path().join("study.toml"))
        .arg(&bench.options.archives)
        .env("PALINDROME_CACHE", bench.folder.path().join("cache"))
        .env("PALINDROME_LOCK", bench.folder.path().join("lock"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(names(&told(&ran)), ["study-started"]);
    assert!(said.contains("events are no longer written"), "{said}");
    let archives = std::fs::read_dir(&bench.options.archives).unwrap();
    let sealed = archives
        .flatten()
        .filter(|a| a.path().join("SEAL").exists());
    assert_eq!(sealed.count(), 1, "{said}");
}
