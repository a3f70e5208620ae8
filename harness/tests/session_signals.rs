//! The program itself, interrupted, killed and starved of disk: children are gone, and what was
//! finished can be gone on with.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Bench, is_alive};
use palindrome_harness::archive::ArchiveWriter;
use rustix::process::{Pid, Signal, kill_process};

const FAST: &str = "[[reply]]\nprompt_ms = 1\ntokens = 3\ngap_ms = 1\n";
const SLOW: &str = "[[reply]]\nprompt_ms = 600000\n";

/// `palindrome run` on a bench, with a runtime folder (and so a lock) of its own.
fn palindrome(bench: &Bench, shell: Option<&str>, more: &[&str]) -> Command {
    let own = env!("CARGO_BIN_EXE_palindrome");
    let mut command = match shell {
        Some(setup) => {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{setup}; exec \"$0\" \"$@\""), own]);
            command
        }
        None => Command::new(own),
    };
    command
        .arg("run")
        .arg(bench.folder.path().join("study.toml"))
        .arg("--out")
        .arg(&bench.options.archives)
        .arg("--yes")
        .args(more)
        .env("XDG_RUNTIME_DIR", bench.folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Looks until something is there; a minute is far beyond any machine's need.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "{what} did not come"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn only_archive(bench: &Bench) -> Option<PathBuf> {
    let folders = fs::read_dir(&bench.options.archives).ok()?;
    folders.flatten().map(|e| e.path()).find(|p| {
        !p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with('.'))
    })
}

/// Starts a study whose second arm never answers; returns once that arm's server has the request:
/// the process, the archive, and the server's process id.
fn stuck(bench: &Bench) -> (Child, PathBuf, u64) {
    let child = palindrome(bench, None, &[]).spawn().unwrap();
    let archive = wait_for("the archive", || only_archive(bench));
    let sessions = archive.join("sessions");
    let pid = wait_for("a request to the slow server", || {
        let partial = fs::read_dir(&sessions)
            .ok()?
            .flatten()
            .map(|e| e.path())
            .find(|p| {
                let name = p
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                name.contains("-B") && name.ends_with(".partial")
            })?;
        let log = fs::read_to_string(partial.join("server.log")).ok()?;
        let launch = fs::read_to_string(partial.join("launch.json")).ok()?;
        log.contains("mock: post").then_some(())?;
        serde_json::from_str::<serde_json::Value>(&launch).ok()?["pid"].as_u64()
    });
    assert!(is_alive(pid));
    (child, archive, pid)
}

fn end(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

fn resume_to_the_end(bench: &Bench, archive: &Path, finished_before: usize) {
    let finished = ArchiveWriter::resume(archive)
        .unwrap()
        .finished_sessions()
        .unwrap();
    assert_eq!(finished.len(), finished_before);
    bench.script("B", FAST);
    let child = palindrome(bench, None, &["--resume", archive.to_str().unwrap()])
        .spawn()
        .unwrap();
    let (code, stderr) = end(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(archive.join("SEAL").exists());
}

/// Sessions before the first of arm B, for seed 7.
fn before_b(bench: &Bench) -> usize {
    let plan = palindrome_harness::study::Plan::of(&bench.study());
    plan.sessions.iter().position(|s| s.arm == "B").unwrap()
}

#[test]
fn ctrl_c_stops_the_servers_and_leaves_a_resumable_archive() {
    let bench = Bench::new("seed = 7", "", &[FAST, SLOW]);
    let (child, archive, server) = stuck(&bench);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, stderr) = end(child);
    assert_eq!(code, Some(106), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    assert!(!is_alive(server), "the server outlived the interrupt");
    assert!(!archive.join("SEAL").exists());
    let kinds: Vec<String> = common::events(&archive)
        .into_iter()
        .map(|(k, _)| k)
        .collect();
    assert_eq!(kinds.last().map(String::as_str), Some("interrupted"));
    resume_to_the_end(&bench, &archive, before_b(&bench));
}

#[test]
fn a_killed_harness_takes_its_server_along_and_loses_one_session_at_most() {
    let bench = Bench::new("seed = 7", "", &[FAST, SLOW]);
    let (child, archive, server) = stuck(&bench);
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    assert_eq!(end(child).0, None);
    wait_for("the server's end", || (!is_alive(server)).then_some(()));
    resume_to_the_end(&bench, &archive, before_b(&bench));
}

#[test]
fn a_disk_that_takes_no_more_is_told_and_leaves_nothing_half_written() {
    // A limit on the size of files stands in for the full disk: the write that passes it fails,
    // with the signal ignored, as one on a full disk does.
    let bench = Bench::new("seed = 7", "", &[FAST, FAST]);
    let study = bench.folder.path().join("study.toml");
    let many = "\"one.json\", ".repeat(60);
    let text = fs::read_to_string(&study)
        .unwrap()
        .replace("\"one.json\", ", &many);
    fs::write(&study, text).unwrap();
    // 32 blocks of 512 or 1024 bytes: the plan and the host fit, a session's requests do not.
    let child = palindrome(&bench, Some("trap '' XFSZ; ulimit -f 32"), &[])
        .spawn()
        .unwrap();
    let (code, stderr) = end(child);
    assert_eq!(code, Some(106), "{stderr}");
    assert!(
        stderr.contains("the archive cannot be written: cannot append to"),
        "{stderr}"
    );
    assert!(stderr.contains("requests.jsonl"), "{stderr}");
    let archive = only_archive(&bench).unwrap();
    assert!(!archive.join("SEAL").exists());
    let left: Vec<_> = fs::read_dir(archive.join("sessions"))
        .unwrap()
        .flatten()
        .collect();
    assert!(left.is_empty(), "half a session is left: {left:?}");
    resume_to_the_end(&bench, &archive, 0);
}
