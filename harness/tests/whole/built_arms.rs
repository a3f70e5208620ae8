//! Arms that are built: a revision in a worktree of its own, once; the repository as it lies.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Ran, Room};

const BODY: &str = r#"{"messages":[{"role":"user","content":"hi"}],"stream":true}"#;

/// A repository whose build writes the server: a script that starts the mock with a gap between
/// tokens. Each build leaves a mark in a file beside the repository.
struct Workbench {
    room: Room,
}

impl Workbench {
    fn new() -> Self {
        let bench = Self { room: Room::new() };
        let room = &bench.room;
        room.write("body.json", BODY);
        room.write("mock.toml", "[[reply]]\nprompt_ms = 2\ntokens = 6\n");
        room.write("marks", "");
        room.write(
            "repo/make.sh",
            "echo compiling\necho made >> \"$1\"\nmkdir -p out\nsed \"s/GAP/$(cat gap)/\" serve.in > out/serve.sh\n",
        );
        room.write(
            "repo/serve.in",
            "exec \"$2\" mock-server --port \"$1\" --script \"$3\" --gap-ms GAP\n",
        );
        room.write("repo/.gitignore", "out/\n");
        bench.git(&["init", "-q", "-b", "main"]);
        bench.commit("gap", "1\n");
        bench.commit("gap", "6\n");
        bench
    }

    fn git(&self, args: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .arg("-C")
            .arg(self.room.path("repo"))
            .args(args)
            .output()
            .expect("git starts");
        assert!(done.status.success(), "{args:?}: {done:?}");
    }

    fn commit(&self, file: &str, text: &str) {
        self.room.write(&format!("repo/{file}"), text);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "change"]);
    }

    /// A study whose arms share all but what is given for each.
    fn study(&self, build: &str, a: &str, b: &str) {
        let program = env!("CARGO_BIN_EXE_palindrome");
        let mock = self.room.path("mock.toml").display().to_string();
        let text = format!(
            "name = \"built\"\nquartets = 1\nburn_in = false\n\
             [base]\nkind = \"openai\"\nrepo = \"repo\"\nbuild = {build}\n\
             command = [\"sh\", \"{{tree}}/out/serve.sh\", \"{{port}}\", {program:?}, {mock:?}]\n\
             [[arm]]\nname = \"A\"\n{a}\n[[arm]]\nname = \"B\"\n{b}\n\
             [workload]\nbodies = [\"body.json\"]\n[guards]\nallow_other_servers = true\nwait_s = 0\n"
        );
        self.room.write("study.toml", &text);
    }

    fn make(&self) -> String {
        format!(
            "[\"sh\", \"make.sh\", {:?}]",
            self.room.path("marks").display().to_string()
        )
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.room.command(args);
        command.env("PALINDROME_CACHE", self.room.path("cache"));
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(args).output().expect("the program starts"))
    }

    fn marks(&self) -> usize {
        let marks = fs::read_to_string(self.room.path("marks")).expect("readable");
        marks.lines().count()
    }
}

/// How an arm was launched in one of its sessions.
fn launch(archive: &Path, arm: &str) -> Value {
    let sessions = fs::read_dir(archive.join("sessions")).expect("readable");
    let mut folders = sessions.map(|entry| entry.expect("readable").path());
    let of_arm =
        |folder: &std::path::PathBuf| folder.to_string_lossy().ends_with(&format!("-{arm}"));
    let folder = folders.find(of_arm).expect("the arm has a session");
    let text = fs::read(folder.join("launch.json")).expect("readable");
    serde_json::from_slice(&text).expect("JSON")
}

fn built_events(archive: &Path) -> Vec<Value> {
    let text = fs::read_to_string(archive.join("events.jsonl")).expect("readable");
    let events = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events
        .filter(|event| event["kind"] == "arm-built")
        .collect()
}

#[test]
fn two_revisions_are_built_once_before_any_session() {
    let bench = Workbench::new();
    bench.study(&bench.make(), "rev = \"HEAD~1\"", "rev = \"HEAD\"");
    let told = bench
        .run(&["run", "--dry-run", "study.toml", "--json"])
        .expect(0);
    let told: Value = serde_json::from_str(&told.out).expect("one JSON object");
    assert_eq!(told["builds"][0]["rev"], "HEAD~1");
    assert_eq!(told["builds"][0]["made"], false);
    assert_eq!(bench.marks(), 0, "a dry run builds nothing");

    // Two runs at once, each with a lock of its own: the builds still follow one another.
    let children = ["one", "two"].map(|name| {
        let mut command = bench.command(&["run", "study.toml", "--out", name]);
        command.env(
            "PALINDROME_LOCK",
            bench.room.path(name).with_extension("lock"),
        );
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    });
    for child in children {
        Ran::of(&child.wait_with_output().expect("it ends")).expect(0);
    }
    assert_eq!(bench.marks(), 2, "each revision is built once");

    let archive = bench.room.archive_in("one");
    let (a, b) = (launch(&archive, "A"), launch(&archive, "B"));
    assert_ne!(a["build"]["commit"], b["build"]["commit"]);
    for launch in [&a, &b] {
        let build = &launch["build"];
        assert_eq!(build["build"], "source");
        assert_eq!(build["dirty"], "false");
        assert!(
            build["build_command"]
                .as_str()
                .is_some_and(|c| c.starts_with("sh make.sh"))
        );
        assert_eq!(build["log_sha256"].as_str().map(str::len), Some(64));
    }
    let text = fs::read_to_string(archive.join("events.jsonl")).expect("readable");
    let at = |kind: &str| text.find(&format!("\"kind\":\"{kind}\""));
    assert!(
        at("arm-built") < at("session-begun") && at("arm-built").is_some(),
        "{text}"
    );
    assert_eq!(built_events(&archive).len(), 2);
    bench
        .run(&["audit", archive.to_str().expect("utf-8")])
        .expect(0);

    let told = bench
        .run(&["run", "--dry-run", "study.toml", "--out", "one"])
        .expect(0);
    assert!(told.out.contains("; it is there"), "{}", told.out);
    assert!(
        told.out
            .contains("CALCULATED from sessions MEASURED in one/"),
        "{}",
        told.out
    );
    // A tree that somebody edited is built anew.
    let tree = told
        .out
        .lines()
        .find_map(|l| l.strip_prefix("build    A: ")?.split(" in ").nth(1));
    let tree = tree
        .and_then(|t| t.split(';').next())
        .expect("the folder is named");
    fs::write(Path::new(tree).join("gap"), "9\n").expect("writable");
    bench
        .run(&["run", "study.toml", "--out", "three"])
        .expect(0);
    assert_eq!(bench.marks(), 3);
    let found: Vec<bool> = built_events(&bench.room.archive_in("three"))
        .iter()
        .filter_map(|event| event["detail"]["found"].as_bool())
        .collect();
    assert_eq!(found, [false, true]);
}

#[test]
fn a_repository_as_it_lies_says_that_it_has_changes() {
    let bench = Workbench::new();
    bench.room.write("repo/gap", "3\n");
    bench.study(&bench.make(), "rev = \"HEAD\"", "");
    bench.run(&["run", "study.toml"]).expect(0);
    let archive = bench.room.archive();
    let sessions = ["A", "B"].map(|arm| launch(&archive, arm)["build"].clone());
    assert_eq!(sessions[0]["commit"], sessions[1]["commit"]);
    assert_eq!(
        (&sessions[0]["dirty"], &sessions[1]["dirty"]),
        (&"false".into(), &"true".into())
    );
    assert!(sessions[0]["diff_sha256"].is_null());
    assert_eq!(sessions[1]["diff_sha256"].as_str().map(str::len), Some(64));
    bench
        .run(&["audit", archive.to_str().expect("utf-8")])
        .expect(0);
}

#[test]
fn what_cannot_be_built_says_why_and_leaves_no_archive() {
    let bench = Workbench::new();
    let broken = "[\"sh\", \"-c\", \"echo compiling; echo error: no such thing >&2; exit 3\"]";
    bench.study(broken, "rev = \"HEAD~1\"", "rev = \"HEAD\"");
    let ran = bench.run(&["run", "study.toml"]).expect(96);
    assert!(
        ran.err.contains("arm \"A\" could not be built"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("compiling\nerror: no such thing"),
        "{}",
        ran.err
    );
    let log = ran
        .err
        .split("its log is ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let log = fs::read_to_string(log.expect("the log is named")).expect("it is there");
    assert_eq!(log, "compiling\nerror: no such thing\n");
    assert!(!bench.room.path("archives").exists());

    bench.study(&bench.make(), "rev = \"HEAD~9\"", "rev = \"HEAD\"");
    for dry in [false, true] {
        let args = ["run", "study.toml", "--dry-run"];
        let ran = bench.run(&args[..2 + usize::from(dry)]).expect(2);
        assert!(
            ran.err.contains("rev = \"HEAD~9\" names no commit of"),
            "{}",
            ran.err
        );
    }
    bench.study(
        "[\"no-such-program\"]",
        "rev = \"HEAD~1\"",
        "rev = \"HEAD\"",
    );
    let ran = bench.run(&["run", "study.toml"]).expect(96);
    assert!(
        ran.err.contains("`no-such-program` does not start"),
        "{}",
        ran.err
    );
    // The second build would replace the first.
    bench.study(&bench.make(), "build = [\"true\"]", "");
    let ran = bench.run(&["run", "study.toml"]).expect(2);
    assert!(
        ran.err.contains("the second build would replace the first"),
        "{}",
        ran.err
    );
}

#[test]
fn an_interrupted_build_ends_with_all_that_it_started() {
    let bench = Workbench::new();
    let pid = bench.room.path("pid");
    let slow = format!(
        "[\"sh\", \"-c\", \"echo $$ > {}; sleep 60 & wait\"]",
        pid.display()
    );
    bench.study(&slow, "rev = \"HEAD~1\"", "rev = \"HEAD\"");
    let mut command = bench.command(&["run", "study.toml"]);
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Kept to the end: a program ends with the reader of what it says.
    let mut told = BufReader::new(child.stderr.take().expect("piped"));
    let begun = told
        .by_ref()
        .lines()
        .any(|line| line.expect("text").contains("building arm A"));
    assert!(begun);
    let started = Instant::now();
    let written = || {
        fs::read_to_string(&pid)
            .ok()
            .filter(|pid| pid.ends_with('\n'))
    };
    while written().is_none() && started.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = written().expect("the build has started");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it still runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(106));
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    assert!(
        !stat.is_ok_and(|s| !s.contains(") Z ")),
        "the build still runs"
    );
}

#[test]
fn a_study_goes_on_only_with_what_it_was_begun_with() {
    let bench = Workbench::new();
    bench.commit("serve.in", "exit 1\n");
    bench.study(&bench.make(), "rev = \"HEAD~1\"", "rev = \"HEAD\"");
    bench.run(&["run", "study.toml"]).expect(96);
    let archive = bench.room.archive();
    let archive = archive.to_str().expect("utf-8");
    bench.commit("gap", "2\n");
    let ran = bench
        .run(&["run", "study.toml", "--resume", archive])
        .expect(2);
    assert!(
        ran.err
            .contains("arm A was built from another state (commit was"),
        "{}",
        ran.err
    );
}
