//! One server against itself, and what is known of the machine afterwards.

use serde_json::Value;

use crate::support::{Ran, Room};

/// A study of two mock arms; gaps of 10 ms, so that what a busy machine adds stays small.
fn study(room: &Room, top: &str) {
    study_of(room, top, "kind = \"mock\"\nscript = \"mock.toml\"");
}

/// The same of servers that are launched like any other program, which the mock is too.
fn study_of_servers(room: &Room, top: &str) {
    let own = env!("CARGO_BIN_EXE_palindrome");
    let script = room.path("mock.toml").display().to_string();
    let command = format!(
        "kind = \"openai\"\ncommand = [{own:?}, \"mock-server\", \"--port\", \"{{port}}\", \"--script\", {script:?}]"
    );
    study_of(room, top, &command);
}

fn study_of(room: &Room, top: &str, server: &str) {
    room.write("body.json", r#"{"messages":[],"stream":true}"#);
    room.write(
        "mock.toml",
        "[[reply]]\nprompt_ms = 10\ntokens = 8\ngap_ms = 10\n",
    );
    room.write(
        "study.toml",
        &format!(
            "name = \"mine\"\n{top}\n\
             [[arm]]\nname = \"one\"\nlabel = \"the server\"\n{server}\n\
             [[arm]]\nname = \"two\"\n{server}\n\
             [workload]\nbodies = [\"body.json\"]\n\
             [guards]\nallow_other_servers = true\nwait_s = 0\n"
        ),
    );
}

fn run(room: &Room, args: &[&str]) -> Ran {
    let mut command = room.command(args);
    // A cache of its own: the record of the machine is in it.
    command.env("PALINDROME_CACHE", room.path("cache"));
    Ran::of(&command.output().expect("the program starts"))
}

fn spread_check(room: &Room) -> Value {
    let doctor = run(room, &["doctor", "--json"]);
    let said: Value = serde_json::from_str(&doctor.out).expect("one JSON object");
    let checks = said["checks"].as_array().expect("checks").clone();
    let found = checks.into_iter().find(|c| c["name"] == "A/A spread");
    found.expect("doctor looks for it")
}

#[test]
fn a_spread_is_measured_kept_reported_and_used() {
    let room = Room::new();
    study_of_servers(&room, "quartets = 2\nburn_in = false\nmargin = 0.05");
    let before = spread_check(&room);
    assert_eq!(
        before["found"],
        "no A/A study of a server was run on this machine"
    );
    assert!(
        before["fix"]
            .as_str()
            .expect("a text")
            .contains("palindrome aa")
    );

    let ran = run(&room, &["aa", "study.toml", "--quartets", "2", "--json"]).expect(0);
    let line: Value = serde_json::from_str(&ran.out).expect("one JSON object");
    let spreads = line["aa"]["spreads"].as_array().expect("spreads");
    assert_eq!(spreads[0]["metric"], "decode_rate");
    let deviation = spreads[0]["pair_deviation"].as_f64().expect("a number");
    assert!(deviation > 0.0, "{deviation}");
    assert_eq!(line["aa"]["server"], "the server");
    assert_eq!(line["aa"]["kind"], "openai");
    assert_eq!(line["aa"]["pairs"], 4);
    // An archive as any: two names of one arm, audited.
    let archive = line["archive"].as_str().expect("a path");
    run(&room, &["audit", archive]).expect(0);
    let plan = room.path(archive).join("plan.json");
    let plan = std::fs::read_to_string(plan).expect("readable");
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["arms"], serde_json::json!(["one-1", "one-2"]));

    let after = spread_check(&room);
    // A note if the machine is busy with other tests just now.
    let busy = line["aa"]["other_work"].as_bool().expect("said");
    assert_eq!(after["state"], if busy { "note" } else { "ok" });
    let found = after["found"].as_str().expect("a text");
    assert!(
        found.contains("a default study (3 quartets) sees"),
        "{found}"
    );
    assert!(found.contains("the server (openai), 20"), "{found}");

    // What a study can see is said before its first session, by the measured spread; one that its
    // file assumes goes before it, and a margin below what is seen is refused.
    study_of_servers(&room, "quartets = 2\nburn_in = false");
    let ran = run(&room, &["run", "study.toml"]).expect(0);
    let told = ran
        .err
        .find("measured on this machine with the server (openai), 20");
    let first = ran.err.find("launching the server");
    assert!(told.is_some() && told < first, "{}", ran.err);
    study(
        &room,
        "quartets = 2\nburn_in = false\nmargin = 0.05\nassumed_spread = 0.1",
    );
    let refused = run(&room, &["run", "study.toml"]).expect(2);
    let says = "the margin of 5.00% is below the 30.9% that 4 pairs of sessions can see here";
    assert!(refused.err.contains(says), "{}", refused.err);
    assert!(
        refused.err.contains("`--yes` runs it all the same"),
        "{}",
        refused.err
    );
}

#[test]
fn the_spread_of_a_mock_is_kept_as_a_mocks_and_is_not_the_machines() {
    let room = Room::new();
    study(&room, "burn_in = false");
    let ran = run(&room, &["aa", "study.toml", "--quartets", "2", "--json"]).expect(0);
    let line: Value = serde_json::from_str(&ran.out).expect("one JSON object");
    assert_eq!(line["aa"]["kind"], "mock");
    let doctor = spread_check(&room);
    assert_eq!(
        doctor["found"],
        "no A/A study of a server was run on this machine"
    );
    // A study of mocks goes by it all the same.
    let ran = run(&room, &["run", "study.toml", "--dry-run"]).expect(0);
    let says = "measured on this machine with the server (mock), 20";
    assert!(ran.out.contains(says), "{}", ran.out);
}

#[test]
fn a_dry_run_says_what_would_run_and_starts_nothing() {
    let room = Room::new();
    study(
        &room,
        "quartets = 4\nmargin = 0.05\nassumed_spread = 0.05\n[looks]\nat = [2, 4]",
    );
    let ran = run(&room, &["run", "study.toml", "--dry-run"]).expect(0);
    for says in [
        "order    one (burn-in) | ",
        "sessions 17, each 1 requests of which 1 are scored",
        "looks    after 2 quartets at a level of 0.00305, after 4 quartets at a level of 0.04900",
        "--port {port} --script ",
        "! the margin of 5.00% is below the ",
    ] {
        assert!(ran.out.contains(says), "no {says:?} in {}", ran.out);
    }
    assert!(!room.path("archives").exists());
    let ran = run(&room, &["run", "study.toml", "--dry-run", "--json"]).expect(0);
    let line: Value = serde_json::from_str(&ran.out).expect("one JSON object");
    assert_eq!(line["plan"]["sessions"].as_array().expect("all").len(), 17);
    assert!(line["commands"]["two"].is_string());
}

#[test]
fn what_cannot_be_run_twice_is_refused() {
    let room = Room::new();
    study(&room, "");
    let ran = run(&room, &["aa", "study.toml", "--arm", "three"]).expect(2);
    assert!(
        ran.err
            .contains("no arm is named \"three\"; there are one, two"),
        "{}",
        ran.err
    );
    run(&room, &["aa", "no-such-model.gguf"]).expect(2);
    for few in ["0", "1"] {
        let ran = run(&room, &["aa", "study.toml", "--quartets", few]).expect(2);
        let words = format!("{few} is not in 2..");
        assert!(ran.err.contains(&words), "{}", ran.err);
    }
    let few = "calibrate --simulate --studies 50 --noise spikes --design mirrored --quartets 3";
    let few: Vec<&str> = few.split(' ').collect();
    let ran = run(&room, &few).expect(0);
    assert!(ran.out.starts_with("SIMULATED: 50 studies"), "{}", ran.out);
    let ran = run(&room, &[&few[..], &["--json"]].concat()).expect(0);
    let line: Value = serde_json::from_str(&ran.out).expect("one JSON object");
    assert_eq!(line["cells"][0]["power"]["share"]["label"], "SIMULATED");
    let none = "calibrate --simulate --studies 5 --design looks-pocock --quartets 2";
    let ran = run(&room, &none.split(' ').collect::<Vec<_>>()).expect(2);
    assert!(ran.err.contains("looks need 3 quartets"), "{}", ran.err);
    let ran = run(&room, &["calibrate"]).expect(2);
    assert!(ran.err.contains("say `--simulate`"), "{}", ran.err);
}
