//! `palindrome record` as a user runs it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use palindrome_harness::study::{Protocol, Study};
use palindrome_harness::workload::Folder;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{ask, palindrome, post, upstream};

const CHAT: &str = "/v1/chat/completions";

/// A recorder and the port on which it listens.
fn start(folder: &Path, server: u16) -> (Child, u16) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_palindrome"))
        .args([
            "record",
            "--upstream",
            &format!("http://127.0.0.1:{server}"),
            "--out",
            "out",
        ])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let port = line.trim_end().rsplit_once(':').unwrap().1.parse().unwrap();
    (child, port)
}

fn quiet_server() -> u16 {
    upstream(|stream, _| {
        use std::io::Write;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            .unwrap();
    })
}

#[test]
fn ctrl_c_ends_it_and_leaves_a_study_that_replays_the_recorded_times() {
    let dir = tempfile::tempdir().unwrap();
    let (child, port) = start(dir.path(), quiet_server());
    let bodies = [1, 2].map(|n| format!("{{\"messages\":[{n}],\"stream\":true}}"));
    for body in &bodies {
        ask(port, &post(CHAT, "", body));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains("out: 2 bodies\n"), "{said}");
    let study = Study::load(&dir.path().join("out/study.toml")).unwrap();
    assert_eq!(study.workload.bodies.len(), 2);
    assert_eq!(study.workload.bodies[1].bytes, bodies[1].as_bytes());
    let Protocol::Arrivals { times_ns, .. } = study.protocol else {
        panic!("{:?}", study.protocol);
    };
    assert_eq!((times_ns.len(), times_ns[0]), (2, 0));
    // Never into a folder that holds something.
    let again = palindrome(
        dir.path(),
        &["record", "--upstream", "http://127.0.0.1:1", "--out", "out"],
    );
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("out is not empty"), "{}", again.err);
}

#[test]
fn a_killed_recorder_leaves_what_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, port) = start(dir.path(), quiet_server());
    ask(port, &post(CHAT, "", "{\"messages\":[]}"));
    // The answer is there, so the body was on its way to the disk; the index says when it is.
    let index = dir.path().join("out/index.jsonl");
    while fs::read_to_string(&index).unwrap().lines().count() < 2 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let folder = Folder::read(&dir.path().join("out")).unwrap();
    assert_eq!(folder.bodies.len(), 1);
    assert_eq!(folder.notes, Vec::<String>::new());
    let starter = palindrome(dir.path(), &["workload", "study", "out"]);
    assert_eq!(starter.code, Some(0));
    assert!(
        starter.out.contains("bodies = [\"00001.json\"]"),
        "{}",
        starter.out
    );
}

#[test]
fn a_recording_of_nothing_and_a_wrong_url_are_said_to_be_so() {
    let dir = tempfile::tempdir().unwrap();
    let (child, _) = start(dir.path(), quiet_server());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    let wrong = palindrome(
        dir.path(),
        &["record", "--upstream", "https://api", "--out", "x"],
    );
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.contains("https is not spoken here"),
        "{}",
        wrong.err
    );
    assert!(!dir.path().join("x").exists());
}
