//! Each way a command can end, with the mock as the server.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ran, Room};

const BODY: &str = r#"{"messages":[{"role":"user","content":"hi"}],"stream":true}"#;

/// Two mock arms; `top` is put before the tables, `guards` into `[guards]`.
fn study(room: &Room, top: &str, guards: &str, slow_gap_ms: f64) {
    room.write("body.json", BODY);
    room.write(
        "fast.toml",
        "[[reply]]\nprompt_ms = 5\ntokens = 12\ngap_ms = 2\n",
    );
    room.write(
        "slow.toml",
        &format!("[[reply]]\nprompt_ms = 5\ntokens = 12\ngap_ms = {slow_gap_ms:.1}\n"),
    );
    room.write(
        "study.toml",
        &format!(
            "name = \"codes\"\n{top}\n\
             [[arm]]\nname = \"fast\"\nkind = \"mock\"\nscript = \"fast.toml\"\n\
             [[arm]]\nname = \"slow\"\nkind = \"mock\"\nscript = \"slow.toml\"\n\
             [workload]\nbodies = [\"body.json\"]\n\
             [guards]\nallow_other_servers = true\nwait_s = 0\n{guards}\n\
             [server]\nready_timeout_s = 20\n"
        ),
    );
}

#[test]
fn done_then_audited_then_reported_then_tampered_with() {
    let room = Room::new();
    study(&room, "quartets = 1", "", 4.0);
    let ran = room.run(&["run", "study.toml"]).expect(0);
    assert!(ran.out.contains("There is no interval"), "{}", ran.out);
    let told = ran.err.find("no difference is detected");
    let first = ran.err.find("launching the server");
    assert!(told.is_some() && told < first, "{}", ran.err);
    let archive = room.archive();
    let archive = archive.to_str().expect("utf-8");
    let audited = room.run(&["audit", archive, "--json"]).expect(0);
    let line: serde_json::Value = serde_json::from_str(&audited.out).expect("one JSON object");
    assert_eq!(line["passed"], true);
    assert_eq!(line["audit"]["sessions"], 5);
    let report = room.run(&["report", archive, "-o", "reports"]).expect(0);
    let html = std::fs::read_to_string(room.path(report.out.trim())).expect("the report is there");
    assert!(html.contains("<svg"), "the chart is in the page");

    room.write("taken", "a file where the folder of reports should be");
    let refused = room.run(&["report", archive, "-o", "taken"]).expect(2);
    assert!(
        refused.err.contains("give another folder"),
        "{}",
        refused.err
    );

    let figures = format!("{archive}/figures.json");
    let text = std::fs::read_to_string(&figures).expect("readable");
    let relabelled = text.replacen("MEASURED", "ASSUMED", 1);
    assert_ne!(relabelled, text, "a measured figure is published");
    std::fs::write(&figures, relabelled).expect("writable");
    let caught = room.run(&["audit", archive]).expect(104);
    assert!(
        caught.out.contains("MISMATCH figures.json"),
        "{}",
        caught.out
    );
}

#[test]
fn regression_inconclusive_and_a_margin_that_cannot_be_settled() {
    let room = Room::new();
    study(
        &room,
        "quartets = 1\nmargin = 0.05\nburn_in = false",
        "",
        8.0,
    );
    let refused = room.run(&["run", "study.toml"]).expect(2);
    assert!(refused.err.contains("gives no interval"), "{}", refused.err);
    room.run(&["run", "study.toml", "--yes"]).expect(101);

    let room = Room::new();
    study(
        &room,
        "quartets = 2\nmargin = 0.05\nburn_in = false",
        "",
        8.0,
    );
    room.run(&["run", "study.toml"]).expect(100);
}

#[test]
fn usage() {
    let room = Room::new();
    study(&room, "quartetts = 1", "", 4.0);
    let ran = room.run(&["run", "study.toml"]).expect(2);
    assert!(
        ran.err.contains("study.toml:2:1") && ran.err.contains("`quartets`"),
        "{}",
        ran.err
    );
    room.run(&["run", "no-such-study.toml"]).expect(2);
    room.run(&["run", "study.toml", "--no-such-flag"]).expect(2);
    room.run(&["audit"]).expect(2);
}

#[test]
fn a_server_that_dies_before_it_is_ready() {
    let room = Room::new();
    study(&room, "quartets = 1", "", 4.0);
    room.write(
        "fast.toml",
        "die_before_ready = true\n[[reply]]\ntokens = 1\n",
    );
    room.write(
        "slow.toml",
        "die_before_ready = true\n[[reply]]\ntokens = 1\n",
    );
    room.run(&["run", "study.toml"]).expect(96);
}

#[test]
fn a_host_that_is_not_fit() {
    let room = Room::new();
    study(&room, "quartets = 1", "min_free_ram_mb = 1000000000", 4.0);
    let ran = room.run(&["run", "study.toml"]).expect(102);
    assert!(
        ran.err.contains("the study needs 1000000000"),
        "{}",
        ran.err
    );
}

#[test]
fn interrupted_then_resumed() {
    let room = Room::new();
    study(&room, "quartets = 1", "", 4.0);
    room.write("slow.toml", "[[reply]]\nprompt_ms = 1500\ntokens = 4\n");
    let child = room
        .command(&["run", "study.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    wait_for_sessions(&room, &child);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it still runs");
    let ran = Ran::of(&child.wait_with_output().expect("it ends")).expect(106);
    assert!(ran.err.contains("--resume"), "{}", ran.err);

    let archive = room.archive();
    let archive = archive.to_str().expect("utf-8");
    room.run(&["run", "study.toml", "--resume", archive])
        .expect(0);
    room.run(&["audit", archive]).expect(0);
    // What is sealed is not gone on with.
    room.run(&["run", "study.toml", "--resume", archive])
        .expect(2);
}

#[test]
fn answers_too_short_for_the_metric_measure_nothing() {
    let room = Room::new();
    study(&room, "quartets = 1\nburn_in = false", "", 4.0);
    // The tokens of the first event are not timed, so one token gives no decode rate.
    room.write("slow.toml", "[[reply]]\nprompt_ms = 5\ntokens = 1\n");
    let ran = room.run(&["run", "study.toml"]).expect(4);
    assert!(
        ran.err.contains("no answer of slow shows a decode rate"),
        "{}",
        ran.err
    );
    // What there is was kept, and another metric of it can be asked about.
    room.run(&["audit", room.archive().to_str().expect("utf-8")])
        .expect(0);
    let room = Room::new();
    study(
        &room,
        "quartets = 1\nburn_in = false\nprimary = \"ttft\"",
        "",
        4.0,
    );
    room.write("slow.toml", "[[reply]]\nprompt_ms = 5\ntokens = 1\n");
    room.run(&["run", "study.toml"]).expect(0);
}

#[test]
fn an_archive_that_cannot_be_made_measures_nothing() {
    let room = Room::new();
    study(&room, "quartets = 1", "", 4.0);
    room.write("taken", "a file where the folder of archives should be");
    let ran = room.run(&["run", "study.toml", "--out", "taken"]).expect(4);
    assert!(ran.err.contains("taken"), "{}", ran.err);
}

#[test]
fn an_arm_that_does_not_repeat_its_tokens() {
    let room = Room::new();
    study(
        &room,
        "quartets = 1\nburn_in = false\nidentity = \"exact\"",
        "",
        2.0,
    );
    room.run(&["run", "study.toml"]).expect(0);

    // The same study, but each launch of the second arm generates one token more than the last.
    let room = Room::new();
    let script = "[[reply]]\nprompt_ms = 5\ntokens = 12\ngap_ms = 2\n";
    room.write("body.json", BODY);
    room.write("steady.toml", script);
    room.write("count", "");
    room.write(
        "serve.sh",
        &format!(
            "printf x >> \"$2/count\"\n\
             tokens=$((12 + $(wc -c < \"$2/count\")))\n\
             printf '[[reply]]\\nprompt_ms = 5\\ntokens = %d\\ngap_ms = 2\\n' $tokens > \"$2/now.toml\"\n\
             exec {:?} mock-server --port \"$1\" --script \"$2/now.toml\"\n",
            env!("CARGO_BIN_EXE_palindrome")
        ),
    );
    let place = room.path(".");
    room.write(
        "study.toml",
        &format!(
            "name = \"codes\"\nquartets = 1\nburn_in = false\nidentity = \"exact\"\n\
             [[arm]]\nname = \"steady\"\nkind = \"mock\"\nscript = \"steady.toml\"\n\
             [[arm]]\nname = \"moody\"\nkind = \"openai\"\n\
             command = [\"sh\", {:?}, \"{{port}}\", {place:?}]\n\
             [workload]\nbodies = [\"body.json\"]\n\
             [guards]\nallow_other_servers = true\nwait_s = 0\n",
            room.path("serve.sh")
        ),
    );
    let ran = room.run(&["run", "study.toml"]).expect(103);
    assert!(
        ran.err
            .contains("moody: generated tokens differ between its sessions in 1 of 1 requests"),
        "{}",
        ran.err
    );
    assert!(
        ran.out.contains("! moody did not repeat itself"),
        "{}",
        ran.out
    );
}

/// Until the first session of the plan is in the archive.
fn wait_for_sessions(room: &Room, child: &Child) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_mins(2) {
        let committed = std::fs::read_dir(room.path("archives"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|archive| std::fs::read_dir(archive.path().join("sessions")).ok())
            .flatten()
            .flatten()
            .any(|session| !session.file_name().to_string_lossy().starts_with('.'));
        if committed {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!(
        "no session of process {} was committed in two minutes",
        child.id()
    );
}

#[test]
fn what_cannot_be_audited_fails_the_audit_and_the_next_archive_is_still_audited() {
    let room = Room::new();
    room.write("broken/plan.json", "{");
    room.write("empty/note.txt", "");
    let ran = room
        .run(&["audit", "broken", "empty", "absent"])
        .expect(104);
    for name in ["broken", "empty", "absent"] {
        assert!(
            ran.out.contains(&format!("{name}\nMISMATCH ")),
            "{}",
            ran.out
        );
    }
    let ran = room.run(&["audit", "broken", "--json"]).expect(104);
    let line: serde_json::Value = serde_json::from_str(&ran.out).expect("one JSON object");
    assert_eq!(line["passed"], false);
    assert!(line["error"].to_string().contains("plan.json"), "{line}");
}

#[test]
fn a_reader_that_leaves_gives_no_verdict() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_palindrome"))
        .args(["calibrate", "--simulate", "--studies", "5"])
        .stdout(writer)
        .output()
        .expect("it starts");
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(!told.contains("panicked"), "{told}");
    assert_eq!(ran.status.code(), Some(141), "{told}");
}
