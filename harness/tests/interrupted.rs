//! `kill -9` of the runner after every step of writing, torn lines among them: what is left can be
//! gone on with, and at the end the study is the one that was never disturbed.
//!
//! Client times are real, so two runs never have equal times. What is compared is therefore, bit for
//! bit: every figure that does not rest on a clock, as published; and every figure there is, after
//! each request of both studies has been given the times of the mock's script.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Bench, is_alive};
use palindrome_harness::archive::{Archive, Facts, hash_file, list_files};
use palindrome_harness::audit::audit;
use palindrome_harness::derive::{Figures, derive};
use palindrome_harness::server::ProcessUsage;
use palindrome_harness::server::mock::Reply;

fn reply(arm: &str) -> Reply {
    let slower = if arm == "B" { 2.0 } else { 1.0 };
    Reply {
        prompt_ms: 2.0 * slower,
        tokens: 4,
        gap_ms: slower,
        ..Reply::default()
    }
}

fn script(arm: &str) -> String {
    let Reply {
        prompt_ms,
        tokens,
        gap_ms,
        ..
    } = reply(arm);
    format!("[[reply]]\nprompt_ms = {prompt_ms}\ntokens = {tokens}\ngap_ms = {gap_ms}\n")
}

/// Two mock arms, one quartet, two requests a session.
fn bench() -> Bench {
    Bench::new(
        "burn_in = false\nseed = 7\nidentity = \"exact\"",
        "",
        &[&script("A"), &script("B")],
    )
}

/// `palindrome run` into a folder of archives, or on with the archive there; killed where `crash`
/// says.
fn run(bench: &Bench, out: &str, crash: Option<&str>) -> Output {
    let out = bench.folder.path().join(out);
    let mut command = Command::new(env!("CARGO_BIN_EXE_palindrome"));
    command
        .arg("run")
        .arg(bench.folder.path().join("study.toml"))
        .args(["--yes", "--out"])
        .arg(&out)
        .env("PALINDROME_CACHE", bench.folder.path().join("cache"))
        .env("PALINDROME_LOCK", bench.folder.path().join("lock"))
        .stdin(Stdio::null());
    if let Some(archive) = archive_in(&out) {
        command.arg("--resume").arg(archive);
    }
    if let Some(crash) = crash {
        command.env("PALINDROME_CRASH", crash);
    }
    command.output().unwrap()
}

/// The only archive of a folder, if there is one yet.
fn archive_in(out: &Path) -> Option<PathBuf> {
    let named = |p: &PathBuf| !p.file_name().unwrap().to_string_lossy().starts_with('.');
    let mut all = fs::read_dir(out).ok()?.flatten().map(|e| e.path());
    all.find(named)
}

/// Finished sessions and the hashes of what they say of themselves.
fn finished(archive: &Path) -> BTreeMap<String, String> {
    let folders = fs::read_dir(archive.join("sessions")).unwrap().flatten();
    let name = |e: &fs::DirEntry| e.file_name().to_string_lossy().into_owned();
    folders
        .filter(|e| !name(e).starts_with('.'))
        .map(|e| (name(&e), hash_file(&e.path().join("session.json")).unwrap()))
        .collect()
}

/// Kills one run after the other, each one step later than the one before, counted from the first
/// step whose name begins with `from`, until one was killed at `until`; then lets the study end. The
/// steps at which runs were killed, in order.
fn killed_everywhere(bench: &Bench, out: &str, from: &str, until: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let mut kept = BTreeMap::new();
    while steps.last().is_none_or(|last| last != until) {
        let crash = format!("{from}:{}", steps.len() + 1);
        let ran = run(bench, out, Some(&crash));
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.signal(), Some(9), "{crash}: {steps:?} {said}");
        let step = said.lines().rev().find_map(|l| l.strip_prefix("crash: "));
        steps.push(step.unwrap_or_else(|| panic!("{said}")).to_owned());
        let Some(archive) = archive_in(&bench.folder.path().join(out)) else {
            continue;
        };
        // What was finished once is never lost or changed.
        let now = finished(&archive);
        for (session, hash) in &kept {
            assert_eq!(now.get(session), Some(hash), "{crash}: {session}");
        }
        kept = now;
    }
    let archive = archive_in(&bench.folder.path().join(out)).unwrap();
    if !archive.join("SEAL").exists() {
        let ran = run(bench, out, None);
        assert_eq!(ran.status.code(), Some(0), "{steps:?} {ran:?}");
    }
    steps
}

/// Whether a run was killed after half of a write and after all of it.
#[track_caller]
fn killed_at(steps: &[String], step: &str) {
    for step in [format!("half of {step}"), step.to_owned()] {
        assert!(steps.contains(&step), "never killed at {step}: {steps:?}");
    }
}

/// The facts, timed as the scripts say, with the machine left out.
fn by_script(facts: &Facts, undisturbed: &Facts) -> Facts {
    let mut facts = facts.clone();
    facts.host = undisturbed.host.clone();
    facts.events.retain(|e| e.kind != "resumed");
    let others = undisturbed.sessions.iter();
    for ((at, session), other) in (1_u64..).zip(&mut facts.sessions).zip(others) {
        // Process ids, ports and what was read back of the process are the machine's.
        session.launch = other.launch.clone();
        session.readback.clone_from(&other.readback);
        let begin = at * 1_000_000_000;
        session.launch.launched_ns = begin;
        session.launch.ready_ns = begin + 1_000_000;
        session.end.started_ns = begin;
        session.end.ended_ns = begin + 900_000_000;
        session.end.stop.usage = ProcessUsage::default();
        session.samples.clear();
        let schedule = reply(&session.planned.arm).schedule();
        let (first, last) = (schedule[0].0, schedule[schedule.len() - 1].0);
        for (nth, request) in (1_u64..).zip(&mut session.requests) {
            request.sent_ns = begin + nth * 100_000_000;
            let after = |ms: f64| request.sent_ns + (ms * 1e6) as u64;
            request.first_byte_ns = Some(after(first));
            request.first_token_ns = Some(after(first));
            request.first_content_ns = Some(after(first));
            request.last_token_ns = Some(after(last));
            request.done_ns = after(last) + 1;
            request.client_cpu_ns = Some(1_000);
            let gaps = schedule
                .windows(2)
                .map(|w| ((w[1].0 - w[0].0) * 1e6) as u64);
            request.token_gaps_ns = gaps.collect();
        }
    }
    facts
}

/// Ids of figures that rest on a clock or on what the machine was doing, at any remove.
fn timed(figures: &Figures) -> BTreeSet<&str> {
    let mut timed = BTreeSet::new();
    for figure in figures.all() {
        let rests = figure.inputs().iter().any(|input| {
            let read = input.split_once('#');
            let of_machine =
                |file: &str| file.ends_with("host.jsonl") || file.ends_with("end.json");
            read.map_or(timed.contains(input.as_str()), |(file, field)| {
                field.ends_with("_ns") || of_machine(file)
            })
        });
        if rests {
            timed.insert(figure.id());
        }
    }
    timed
}

#[track_caller]
fn same_study(disturbed: &Path, undisturbed: &Path) {
    let found = audit(disturbed).unwrap();
    assert_eq!(found.mismatches, [], "{found}");
    let open = |path| Archive::open(path).unwrap();
    let (one, other) = (open(disturbed), open(undisturbed));
    assert_eq!(one.plan(), other.plan());
    let published = |archive: &Archive| archive.figures().unwrap().unwrap();
    let (a, b) = (published(&one), published(&other));
    assert_eq!(a.len(), b.len());
    assert_eq!(a.identity(), b.identity());
    let times = timed(&a);
    let mut compared = 0;
    for (x, y) in a.all().iter().zip(b.all()) {
        assert_eq!(
            (x.id(), x.unit(), x.label(), x.formula(), x.inputs()),
            (y.id(), y.unit(), y.label(), y.formula(), y.inputs())
        );
        if !times.contains(x.id()) {
            compared += 1;
            assert!(
                x.same_bits(y),
                "{}: {:?} {:?}",
                x.id(),
                x.value(),
                y.value()
            );
        }
    }
    assert!(compared > 50, "only {compared} figures rest on no clock");
    let facts = |archive: &Archive| archive.facts().unwrap();
    let (a, b) = (facts(&one), facts(&other));
    let (a, b) = (derive(&by_script(&a, &b)), derive(&by_script(&b, &b)));
    for (x, y) in a.all().iter().zip(b.all()) {
        assert_eq!(x, y);
    }
    assert_eq!(a, b);
    let ratio = a.value("compare/B-over-A/decode_rate/ratio").unwrap();
    assert!((ratio - 0.5).abs() < 1e-6, "{ratio}");
}

#[test]
fn a_study_killed_at_every_step_ends_as_the_undisturbed_one() {
    let bench = bench();
    let at = |out: &str| archive_in(&bench.folder.path().join(out)).unwrap();
    let ran = run(&bench, "undisturbed", None);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");

    // While the archive is made.
    let end = "rename of the archive";
    let steps = killed_everywhere(&bench, "made", "", end);
    for file in [
        "study.toml",
        "plan.json",
        "host.json",
        "one.json",
        "two.json",
    ] {
        killed_at(&steps, file);
    }
    same_study(&at("made"), &at("undisturbed"));

    // Through a session, from its folder to the line that says that it is kept: at every file that
    // this program writes (the server writes its log, the sampler its own file) and every event.
    let (begin, end) = ("a session's folder", "event session-committed");
    let steps = killed_everywhere(&bench, "session", begin, end);
    let first = fs::read_dir(at("undisturbed").join("sessions"))
        .unwrap()
        .next();
    for file in list_files(&first.unwrap().unwrap().path()).unwrap() {
        let name = file.rsplit('/').next().unwrap();
        if name != "server.log" && name != "host.jsonl" {
            killed_at(&steps, name);
        }
    }
    for event in ["session-begun", "server-ready", "request", "server-stopped"] {
        killed_at(&steps, &format!("event {event}"));
    }
    let last = [
        "rename of a session",
        "half of event session-committed",
        end,
    ];
    assert_eq!(steps[steps.len() - 3..], last);
    same_study(&at("session"), &at("undisturbed"));

    // While a study that was killed in a session is taken up again.
    let ran = run(&bench, "resumed", Some("half of requests.jsonl:1"));
    assert_eq!(ran.status.signal(), Some(9), "{ran:?}");
    let end = "discarding what was begun";
    let steps = killed_everywhere(&bench, "resumed", "half of event resumed", end);
    for event in ["event resumed", "event session-discarded"] {
        killed_at(&steps, event);
    }
    same_study(&at("resumed"), &at("undisturbed"));
    let ran = run(&bench, "taken-up", Some("half of end.json:2"));
    assert_eq!(ran.status.signal(), Some(9), "{ran:?}");
    let (from, end) = ("half of event host-on-resume", "event host-on-resume");
    assert_eq!(
        killed_everywhere(&bench, "taken-up", from, end),
        [from, end]
    );
    same_study(&at("taken-up"), &at("undisturbed"));

    // And from the sealing on.
    let ran = run(&bench, "sealed", Some("event sealing:1"));
    assert_eq!(ran.status.signal(), Some(9), "{ran:?}");
    let from = "half of .figures.json.partial";
    let steps = killed_everywhere(&bench, "sealed", from, ".SEAL.partial");
    for file in ["figures.json", "manifest.json", "SEAL"] {
        killed_at(&steps, &format!(".{file}.partial"));
    }
    assert!(steps.iter().any(|s| s == "rename of a file"), "{steps:?}");
    same_study(&at("sealed"), &at("undisturbed"));
}

/// Process ids that a wrapper wrote, once all are there.
fn pids(file: &Path, count: usize) -> Option<Vec<u64>> {
    let text = fs::read_to_string(file).ok()?;
    let all: Vec<u64> = text.lines().filter_map(|l| l.trim().parse().ok()).collect();
    (all.len() == count).then_some(all)
}

/// Looks until something is so; a minute is far beyond any machine's need.
fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn no_server_survives_its_runner_and_nothing_that_it_started_does() {
    let bench = bench();
    let at = |name: &str| bench.folder.path().join(name);
    // A server behind a shell, with a child of its own and one that leaves the process group.
    let wrapper = format!(
        "echo $$ >> {pids}\n\
         sleep 600 & echo $! >> {pids}\n\
         setsid sleep 600 & echo $! >> {pids}\n\
         {own} mock-server --port $1 --script {script} & echo $! >> {pids}\n\
         wait\n",
        pids = at("pids").display(),
        own = env!("CARGO_BIN_EXE_palindrome"),
        script = at("slow.toml").display(),
    );
    fs::write(at("wrapper.sh"), wrapper).unwrap();
    fs::write(at("slow.toml"), "[[reply]]\nprompt_ms = 600000\n").unwrap();
    let arm = |name: &str| {
        format!(
            "[[arm]]\nname = \"{name}\"\nkind = \"openai\"\ncommand = [\"sh\", {:?}, \"{{port}}\"]\n",
            at("wrapper.sh")
        )
    };
    let study = format!(
        "name = \"wrapped\"\nquartets = 1\n{}{}[guards]\nallow_other_servers = true\nwait_s = 0\n\
         [workload]\nbodies = [\"one.json\"]\n",
        arm("A"),
        arm("B")
    );
    fs::write(at("study.toml"), study).unwrap();
    let mut runner = Command::new(env!("CARGO_BIN_EXE_palindrome"))
        .arg("run")
        .arg(at("study.toml"))
        .args(["--yes", "--out"])
        .arg(at("archives"))
        .env("PALINDROME_CACHE", at("cache"))
        .env("PALINDROME_LOCK", at("lock"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let archive = || archive_in(&at("archives"));
    let ready = || {
        let log = archive().map(|a| fs::read_to_string(a.join("events.jsonl")));
        log.is_some_and(|log| log.is_ok_and(|log| log.contains("server-ready")))
    };
    wait_until("the server is not ready", ready);
    let all = pids(&at("pids"), 4).unwrap();
    assert!(all.iter().all(|pid| is_alive(*pid)), "{all:?}");
    runner.kill().unwrap();
    runner.wait().unwrap();
    for pid in all {
        wait_until("a process outlives the runner", || !is_alive(pid));
    }
}
