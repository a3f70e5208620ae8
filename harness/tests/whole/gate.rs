//! `palindrome gate`: on a study just run, on an archive, with a baseline program; each way of
//! printing it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::support::{Ran, Room, engine, model};

/// A study of two mock arms: 40 ms to the first token, then gaps of 10 and `gap_ms`. `quartets` give
/// intervals that a busy machine leaves narrow enough for margins as wide as those here.
fn study(room: &Room, quartets: u32, demands: &str, gap_ms: f64) {
    room.write("body.json", r#"{"messages":[],"stream":true}"#);
    for (name, gap_ms) in [("old", 10.0), ("new", gap_ms)] {
        let script = format!("[[reply]]\nprompt_ms = 40\ntokens = 10\ngap_ms = {gap_ms:.1}\n");
        room.write(&format!("{name}.toml"), &script);
    }
    let arm = |name: &str| {
        format!("[[arm]]\nname = \"{name}\"\nkind = \"mock\"\nscript = \"{name}.toml\"\n")
    };
    room.write(
        "study.toml",
        &format!(
            "name = \"change\"\nquartets = {quartets}\nburn_in = false\nidentity = \"exact\"\n{demands}\n{}{}\
             [workload]\nbodies = [\"body.json\"]\n[guards]\nallow_other_servers = true\nwait_s = 0\n",
            arm("old"),
            arm("new")
        ),
    );
}

/// As on the user's own machine, whatever this test runs on.
fn plain(room: &Room, args: &[&str]) -> Ran {
    Ran::of(&output(room, args, &[]))
}

fn output(room: &Room, args: &[&str], more: &[(&str, &str)]) -> Output {
    let mut command = room.command(args);
    command
        .env_remove("GITHUB_ACTIONS")
        .env_remove("GITHUB_STEP_SUMMARY")
        .envs(more.iter().copied());
    command.output().expect("the program starts")
}

const DEMANDS: &str = "margin = 0.3\n[[gate]]\nmetric = \"ttft\"\nmargin = 0.9\n\
                       [[gate]]\nmetric = \"client_wall\"\nmargin = 0.5\ndirection = \"either\"\n";

#[test]
fn a_slowed_arm_is_a_regression_in_every_format() {
    let room = Room::new();
    study(&room, 3, DEMANDS, 30.0);
    let ran = plain(&room, &["gate", "study.toml"]).expect(100);
    for says in [
        "REGRESSION: change\n",
        "new / old: decode rate",
        "above 0.700   REGRESSION",
        "below 1.90",
        "0.500 to 1.50   REGRESSION",
        "Each demand is judged by its own interval",
        "Tokens declared equal are, in ",
        "Why: new is slower than old by more than the margin of 0.3 (decode rate).",
        "Next: palindrome report archives/",
    ] {
        assert!(ran.out.contains(says), "no {says:?} in\n{}", ran.out);
    }
    assert!(ran.out.lines().count() <= 30, "one screen:\n{}", ran.out);

    let archive = room.archive();
    let archive = archive.to_str().expect("utf-8");
    let again = plain(&room, &["gate", archive, "--junit", "gate.xml"]).expect(100);
    let rows = |text: &str| text.split_once('\n').expect("lines").1.replace(archive, "");
    assert_eq!(
        rows(&again.out).lines().skip(1).collect::<Vec<_>>(),
        rows(&ran.out)
            .lines()
            .skip(1)
            .map(|l| l.replace(&archive_as_run(&ran), ""))
            .collect::<Vec<_>>(),
        "an archive is judged as the run was"
    );
    let xml = fs::read_to_string(room.path("gate.xml")).expect("written");
    assert!(
        xml.contains(
            "<testsuite name=\"palindrome.change\" tests=\"10\" failures=\"2\" errors=\"0\">"
        ),
        "{xml}"
    );
    assert!(
        xml.contains("<failure type=\"regression\" message=\"new is slower than old by more than"),
        "{xml}"
    );

    let ran = plain(&room, &["gate", archive, "--json"]).expect(100);
    let line: serde_json::Value = serde_json::from_str(&ran.out).expect("one JSON object");
    assert_eq!(
        (&line["exit"], &line["outcome"]),
        (&100.into(), &"regression".into())
    );
    assert_eq!(line["rules"][1]["decision"], "pass");
    assert_eq!(line["rules"][2]["declared"], "gate/1/margin");
    let ratio = line["rules"][0]["ratio"].as_f64().expect("a ratio");
    assert!((0.2..0.5).contains(&ratio), "{ratio}");

    // On GitHub it is told so by the environment alone.
    let summary = room.path("summary.md");
    let on_github = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_STEP_SUMMARY", summary.to_str().expect("utf-8")),
    ];
    let ran = Ran::of(&output(&room, &["gate", archive], &on_github)).expect(100);
    let errors: Vec<&str> = ran
        .out
        .lines()
        .filter(|l| l.starts_with("::error "))
        .collect();
    assert_eq!(
        errors[0],
        "::error title=new / old%3A decode rate::new is slower than old by more than the margin of 0.3 (decode rate)"
    );
    assert_eq!(errors.len(), 2, "{}", ran.out);
    let page = fs::read_to_string(&summary).expect("the job's page");
    assert!(page.starts_with("### REGRESSION: change\n"), "{page}");
    assert!(
        page.contains("| new / old: time to first token | "),
        "{page}"
    );

    // Evidence that does not hold is not judged, and GitHub is told.
    let figures = format!("{archive}/figures.json");
    let text = fs::read_to_string(&figures).expect("readable");
    fs::write(&figures, text.replacen("MEASURED", "ASSUMED", 1)).expect("writable");
    let ran = Ran::of(&output(&room, &["gate", archive], &on_github)).expect(104);
    assert!(ran.err.contains("MISMATCH figures.json"), "{}", ran.err);
    assert!(
        ran.out.starts_with("::error title=palindrome gate "),
        "{}",
        ran.out
    );
}

/// How the run named its archive.
fn archive_as_run(ran: &Ran) -> String {
    let line = ran
        .out
        .lines()
        .find(|l| l.starts_with("archive   "))
        .expect("an archive");
    line.trim_start_matches("archive   ").to_owned()
}

#[test]
fn an_equal_arm_passes_and_one_quartet_is_inconclusive() {
    let room = Room::new();
    study(
        &room,
        3,
        "[gate]\nmetric = \"client_wall\"\nmargin = 0.9\n",
        10.0,
    );
    let ran = plain(&room, &["gate", "study.toml"]).expect(0);
    assert!(ran.out.starts_with("PASS: change\n"), "{}", ran.out);
    assert!(ran.out.contains("below 1.90   pass"), "{}", ran.out);

    let room = Room::new();
    study(&room, 1, "margin = 0.2\n", 10.0);
    let ran = plain(&room, &["gate", "study.toml"]).expect(2);
    assert!(
        ran.err.contains("1 quartet gives no interval"),
        "{}",
        ran.err
    );
    let ran = plain(&room, &["gate", "study.toml", "--yes"]).expect(101);
    assert!(ran.out.starts_with("INCONCLUSIVE: change\n"), "{}", ran.out);
    let archive = room.archive();
    let archive = archive.to_str().expect("utf-8");
    let on_github = [("GITHUB_ACTIONS", "true")];
    let ran = Ran::of(&output(&room, &["gate", archive], &on_github)).expect(101);
    let warning = "\n::warning title=new / old%3A decode rate::new over old: ";
    assert!(ran.out.contains(warning), "{}", ran.out);
}

#[test]
fn what_demands_nothing_and_what_is_no_study_are_said() {
    let room = Room::new();
    study(&room, 2, "", 10.0);
    let ran = plain(&room, &["gate", "study.toml"]).expect(2);
    assert!(
        ran.err.contains("study.toml: nothing is demanded"),
        "{}",
        ran.err
    );
    assert!(!room.path("archives").exists(), "nothing was run");
    plain(&room, &["gate", "no-such-study.toml"]).expect(2);
    for (demands, says) in [
        (
            "[gate]\nmetric = \"goodput\"\nmargin = 0.1\n",
            ":6:10: metric = \"goodput\" is not a metric of this protocol",
        ),
        (
            "[gate]\nmetric = \"ttft\"\nmargin = 5\n",
            ":7:10: gate.margin = 5 is out of range: give a share",
        ),
        (
            "margin = 0.1\n[[gate]]\nmetric = \"decode_rate\"\nmargin = 0.2\n",
            "`margin` already limits decode_rate",
        ),
        (
            "[gate]\nmetric = \"ttft\"\nmargins = 0.1\n",
            ":7:1: unknown key `margins` in [gate]; did you mean `margin`?",
        ),
        (
            "[gate]\nmetric = \"ttft\"\nmargin = 0.1\nlevel = 1\n",
            ":8:9: level = 1: this protocol has 0 levels",
        ),
        (
            "gate = 5\n",
            "gate = 5 is a whole number: give a table, under a line [gate]",
        ),
    ] {
        study(&room, 2, demands, 10.0);
        let ran = plain(&room, &["gate", "study.toml"]).expect(2);
        assert!(ran.err.contains(says), "no {says:?} in {}", ran.err);
    }
}

#[test]
fn an_arm_is_held_to_the_program_from_before() {
    let room = Room::new();
    room.write("body.json", r#"{"messages":[],"stream":true}"#);
    room.write("model.gguf", "a model");
    for (name, gap_ms) in [("before", 10.0), ("now", 30.0)] {
        let script = room.write(
            &format!("{name}.toml"),
            &format!("[[reply]]\nprompt_ms = 5\ntokens = 8\ngap_ms = {gap_ms:.1}\n"),
        );
        // serve MODEL --host ADDRESS --port PORT
        let program = room.write(
            name,
            &format!(
                "#!/bin/sh\nexec {:?} mock-server --port \"$6\" --script {script:?}\n",
                env!("CARGO_BIN_EXE_palindrome")
            ),
        );
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its owner");
    }
    room.write(
        "study.toml",
        "name = \"own\"\nquartets = 3\nburn_in = false\nmargin = 0.4\n\
         [[arm]]\nname = \"engine\"\nkind = \"palindrome-engine\"\nmodel = \"model.gguf\"\nprogram = \"now\"\n\
         [workload]\nbodies = [\"body.json\"]\n[guards]\nallow_other_servers = true\nwait_s = 0\n",
    );
    let args = [
        "gate",
        "study.toml",
        "--baseline-program",
        "before",
        "--baseline-label",
        "commit 1a2b",
    ];
    let ran = plain(&room, &args).expect(100);
    assert!(
        ran.out.contains("candidate / baseline: decode rate"),
        "{}",
        ran.out
    );
    let launch = fs::read_dir(room.archive().join("sessions"))
        .expect("sessions")
        .map(|entry| entry.expect("readable").path())
        .find(|path| path.ends_with("00-baseline") || path.ends_with("01-baseline"))
        .expect("a session of the baseline")
        .join("launch.json");
    let launch = fs::read_to_string(launch).expect("readable");
    assert!(launch.contains("engine, commit 1a2b"), "{launch}");
    let ran = plain(
        &room,
        &["gate", "study.toml", "--baseline-program", "absent"],
    )
    .expect(2);
    assert!(
        ran.err.contains("cannot read the baseline absent"),
        "{}",
        ran.err
    );
}

#[test]
fn a_deliberately_slowed_engine_is_a_regression() {
    let room = Room::new();
    let body = serde_json::json!({
        "prompt": "def add(a, b):", "n_predict": 16, "ignore_eos": true, "stream": true, "return_tokens": true,
        "temperature": 0.0, "seed": 1, "cache_prompt": false,
    });
    room.write("body.json", &body.to_string());
    // Debug builds can be held to a pace: at least so long from token to token.
    let arm = |name: &str, pace_ms: u32| {
        format!(
            "[[arm]]\nname = \"{name}\"\nkind = \"palindrome-engine\"\nprogram = {:?}\n\
             env = {{ PALINDROME_PLANTED = \"decode_floor_ms={pace_ms}\" }}\n",
            engine()
        )
    };
    room.write(
        "study.toml",
        &format!(
            "name = \"slowed\"\nquartets = 2\nburn_in = false\nmargin = 0.2\nidentity = \"exact\"\n\
             [base]\nmodel = {:?}\nthreads = 1\nctx = 256\n{}{}\
             [workload]\npath = \"/completion\"\nbodies = [\"body.json\"]\n\
             [guards]\nallow_other_servers = true\n",
            model(),
            arm("before", 8),
            arm("slowed", 16)
        ),
    );
    let ran = plain(&room, &["gate", "study.toml"]).expect(100);
    assert!(
        ran.out.contains(
            "Why: slowed is slower than before by more than the margin of 0.2 (decode rate)."
        ),
        "{}",
        ran.out
    );
}

#[test]
fn an_arm_is_held_to_an_earlier_revision() {
    let room = Room::new();
    room.write("body.json", r#"{"messages":[],"stream":true}"#);
    room.write("model.gguf", "a model");
    // The server of the tree: serve MODEL --host ADDRESS --port PORT.
    let server = |gap_ms: f64| {
        let script = format!("[[reply]]\nprompt_ms = 5\ntokens = 8\ngap_ms = {gap_ms:.1}\n");
        room.write("source/script.toml", &script);
    };
    let program = room.write(
        "source/server",
        &format!(
            "#!/bin/sh\nexec {:?} mock-server --port \"$6\" --script \"$(dirname \"$0\")/script.toml\"\n",
            env!("CARGO_BIN_EXE_palindrome")
        ),
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its owner");
    server(10.0);
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        let status = git.args(args).current_dir(room.path("source")).status();
        assert!(status.expect("git is there").success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "before"]);
    server(30.0);
    room.write(
        "study.toml",
        "name = \"own\"\nquartets = 3\nburn_in = false\nmargin = 0.4\n\
         [[arm]]\nname = \"engine\"\nkind = \"palindrome-engine\"\nmodel = \"model.gguf\"\n\
         build = [\"true\"]\nrepo = \"source\"\nprogram = \"server\"\n\
         [workload]\nbodies = [\"body.json\"]\n[guards]\nallow_other_servers = true\nwait_s = 0\n",
    );
    let cache = room.path("cache");
    let cache = [("PALINDROME_CACHE", cache.to_str().expect("utf-8"))];
    let args = ["gate", "study.toml", "--baseline-rev", "HEAD"];
    let ran = Ran::of(&output(&room, &args, &cache)).expect(100);
    assert!(
        ran.out.contains("candidate / baseline: decode rate"),
        "{}",
        ran.out
    );
}
