//! Mistakes in a study file: each says what, where, and what would be right.

use std::fs;
use std::path::Path;

use palindrome_harness::derive::Metric;
use palindrome_harness::study::{Plan, Protocol, Study};

const GOOD: &str = r#"name = "demo"
question = "is B faster?"
seed = 7
quartets = 1
identity = "exact"

[base]
threads = 2

[[arm]]
name = "A"
kind = "mock"
script = "mock.toml"

[[arm]]
name = "B"
label = "the other"
kind = "openai"
command = ["serve", "--port", "{port}"]
env = { LANG = "C" }

[workload]
bodies = ["coding/01.json", "coding/02.json"]
warmups = ["coding/01.json"]
expect_cached = "prefix"

[guards]
wait_s = 1
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("coding")).unwrap();
    for body in ["coding/01.json", "coding/02.json"] {
        fs::write(folder.path().join(body), "{\"stream\":true}").unwrap();
    }
    fs::write(folder.path().join("coding/broken.json"), "{\"stream\":").unwrap();
    fs::write(folder.path().join("mock.toml"), "").unwrap();
    folder
}

fn load(folder: &Path, text: &str) -> Result<Study, String> {
    let path = folder.join("study.toml");
    fs::write(&path, text).unwrap();
    let place = format!("{}/", folder.canonicalize().unwrap().display());
    Study::load(&path).map_err(|e| e.to_string().replace(&place, ""))
}

/// The message for the good file with one replacement.
fn mistake(from: &str, to: &str) -> String {
    let folder = folder();
    assert!(GOOD.contains(from), "{from:?} is not in the study");
    match load(folder.path(), &GOOD.replacen(from, to, 1)) {
        Ok(_) => panic!("{to:?} was accepted"),
        Err(message) => message,
    }
}

#[test]
fn a_good_study_loads_and_expands() {
    let folder = folder();
    let study = load(folder.path(), GOOD).unwrap();
    assert_eq!(study.arms[1].label, "the other");
    assert_eq!(study.arms[0].threads, Some(2));
    let plan = Plan::of(&study);
    assert_eq!(plan.sessions.len(), 5);
    assert_eq!(plan.bodies[1].0, "coding-02.json");
    assert_eq!(plan.warmups[0].0, "coding-01.json");
    assert_eq!(study.workload_files().len(), 2);
}

#[test]
fn an_unknown_key_suggests_the_nearest() {
    let message = mistake("quartets = 1", "quartet = 1");
    assert!(
        message.starts_with("study.toml:4:1: unknown field `quartet`"),
        "{message}"
    );
    assert!(message.ends_with("did you mean `quartets`?"), "{message}");
    let message = mistake("threads = 2", "thread = 2");
    assert!(
        message.starts_with("study.toml:8:1: unknown field `thread`"),
        "{message}"
    );
    assert!(message.ends_with("did you mean `threads`?"), "{message}");
    let message = mistake("\"openai\"", "\"openia\"");
    assert!(message.ends_with("did you mean `openai`?"), "{message}");
}

#[test]
fn a_wrong_type_says_where_and_what_was_expected() {
    let message = mistake("quartets = 1", "quartets = \"one\"");
    assert!(
        message.starts_with("study.toml:4:12: invalid type: string \"one\", expected a whole number from 0 to 4294967295"),
        "{message}"
    );
    let message = mistake("quartets = 1", "quartets = -1");
    assert!(message.starts_with("study.toml:4:12: "), "{message}");
    let message = mistake("seed = 7", "seed = ");
    assert!(message.starts_with("study.toml:3:"), "{message}");
}

#[test]
fn a_number_out_of_range_says_the_range_and_where() {
    let seeds = "expected a whole number from 0 to 18446744073709551615";
    for (written, found) in [
        ("-1", "integer `-1`"),
        ("18446744073709551616", "integer `18446744073709551616`"),
        ("1.5", "floating point `1.5`"),
    ] {
        let message = mistake("seed = 7", &format!("seed = {written}"));
        assert!(message.starts_with("study.toml:3:8: "), "{message}");
        assert!(message.ends_with(&format!("{found}, {seeds}")), "{message}");
    }
    for (from, to, says) in [
        (
            "expect_cached = \"prefix\"",
            "timeout_s = 0",
            "25:13: workload.timeout_s = 0 is out of range: give 0.001 to 864000",
        ),
        (
            "wait_s = 1",
            "wait_s = -1",
            "28:10: guards.wait_s = -1 is out of range: give 0 to 864000",
        ),
        (
            "wait_s = 1",
            "max_load = -0.5",
            "28:12: guards.max_load = -0.5 is out of range: give 0 or more",
        ),
        (
            "wait_s = 1",
            "max_psi_cpu_some10 = 101",
            "28:22: guards.max_psi_cpu_some10 = 101 is out of range: give 0 to 100",
        ),
        (
            "threads = 2",
            "threads = 0",
            "8:11: base.threads = 0 is out of range: give 1 to 4294967295",
        ),
        (
            "label = \"the other\"",
            "ctx = 0",
            "17:7: arm.ctx = 0 is out of range: give 1 to 4294967295",
        ),
        (
            "wait_s = 1",
            "wait_s = \"x\"",
            "28:10: invalid type: string \"x\", expected a number",
        ),
    ] {
        let message = mistake(from, to);
        assert_eq!(message, format!("study.toml:{says}"));
    }
}

#[test]
fn missing_files_are_named_with_where_they_were_looked_for() {
    let message = mistake("\"coding/02.json\"", "\"coding/03.json\"");
    assert!(
        message.contains(":23:29: body \"coding/03.json\" not found: looked for "),
        "{message}"
    );
    assert!(message.ends_with("coding/03.json"), "{message}");
    let message = mistake("mock.toml", "mok.toml");
    assert!(
        message.contains("script \"mok.toml\" not found"),
        "{message}"
    );
    let message = mistake("threads = 2", "model = \"m.gguf\"");
    assert!(message.contains("model \"m.gguf\" not found"), "{message}");
}

#[test]
fn what_could_not_be_measured_is_refused() {
    assert!(mistake("quartets = 1", "quartets = 0").contains("measures nothing"));
    assert!(mistake("name = \"B\"", "name = \"A\"").contains("two arms are named \"A\""));
    assert!(mistake("name = \"B\"", "name = \"B/../x\"").contains("letters, digits"));
    assert!(
        mistake(
            "bodies = [\"coding/01.json\", \"coding/02.json\"]",
            "bodies = []"
        )
        .contains("no bodies")
    );
    assert!(mistake("coding/02.json", "coding/broken.json").contains("is not JSON"));
    assert!(
        mistake("command = [\"serve\", \"--port\", \"{port}\"]", "").contains("needs `command")
    );
    assert!(
        mistake("script = \"mock.toml\"", "command = [\"x\"]")
            .contains("`command` is for arms of kind openai")
    );
    assert!(mistake("wait_s = 1", "wait_s = -1").contains("guards.wait_s"));
    assert!(
        mistake("expect_cached = \"prefix\"", "path = \"https://x/v1\"")
            .contains("https is not supported")
    );
    assert!(
        mistake(
            "kind = \"openai\"\ncommand = [\"serve\", \"--port\", \"{port}\"]",
            "kind = \"llama-cpp\""
        )
        .contains("has no model")
    );
}

#[test]
fn an_unreadable_study_is_named() {
    let message = Study::load(Path::new("/nowhere/study.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("cannot read the study file /nowhere/study.toml"),
        "{message}"
    );
}

#[test]
fn metrics_have_the_names_of_figures_and_no_others() {
    for &metric in Metric::of(&Protocol::Fresh) {
        let folder = folder();
        let line = format!("seed = 7\nprimary = \"{}\"", metric.key());
        let study = load(folder.path(), &GOOD.replacen("seed = 7", &line, 1)).unwrap();
        assert_eq!(study.primary, metric);
    }
    let message = mistake("seed = 7", "primary = \"prefill_rate\"");
    for name in ["decode_rate", "prompt_rate", "ttft", "client_wall"] {
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn what_a_message_gives_as_right_is_right() {
    let small = mistake("quartets = 1", "quartets = 2\nlooks = { at = [2, 4] }");
    assert!(small.ends_with("which takes 3 quartets or more"), "{small}");
    let large = mistake("quartets = 1", "quartets = 6\nlooks = { at = [2, 4] }");
    assert!(large.ends_with("such as [2, 6]"), "{large}");
    let folder = folder();
    let right = GOOD.replace("quartets = 1", "quartets = 6\nlooks = { at = [2, 6] }");
    assert_eq!(
        load(folder.path(), &right).map(|s| s.looks.unwrap().at),
        Ok(vec![2, 6])
    );
}
