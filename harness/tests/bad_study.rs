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
    for (from, to, says) in [
        (
            "quartets = 1",
            "quartet = 1",
            "4:1: unknown key `quartet` in the study; did you mean `quartets`?",
        ),
        (
            "threads = 2",
            "thread = 2",
            "8:1: unknown key `thread` in [base]; did you mean `threads`?",
        ),
        (
            "wait_s = 1",
            "quartets = 2",
            "28:1: unknown key `quartets` in [guards]; `quartets` belongs in the study",
        ),
        (
            "threads = 2",
            "bodies = 2",
            "8:1: unknown key `bodies` in [base]; `bodies` belongs in [workload]",
        ),
        (
            "wait_s = 1",
            "zzzzzzzzz = 1",
            "28:1: unknown key `zzzzzzzzz` in [guards]; its keys are min_free_ram_mb, max_load, max_psi_cpu_some10, \
             max_psi_memory_some10, allow_other_servers, wait_s",
        ),
        (
            "\"openai\"",
            "\"openia\"",
            "18:8: arm.kind = \"openia\" is unknown: give one of llama-cpp, palindrome-engine, openai, mock; did you \
             mean `openai`?",
        ),
        // A mistyped key that must be there is one mistake.
        (
            "bodies =",
            "bodeis =",
            "23:1: unknown key `bodeis` in [workload]; did you mean `bodies`?",
        ),
    ] {
        assert_eq!(mistake(from, to), format!("study.toml:{says}"));
    }
}

#[test]
fn a_wrong_type_says_what_was_found_where_and_what_would_be_right() {
    for (from, to, says) in [
        (
            "quartets = 1",
            "quartets = \"one\"",
            "4:12: quartets = \"one\" is text: give a whole number, 1 to 1000",
        ),
        (
            "quartets = 1",
            "quartets = 1.5",
            "4:12: quartets = 1.5 is a number with a fraction: give a whole number, 1 to 1000",
        ),
        (
            "quartets = 1",
            "quartets = -1",
            "4:12: quartets = -1 is out of range: give 1 to 1000",
        ),
        (
            "name = \"demo\"",
            "name = 5",
            "1:8: name = 5 is a whole number: give text in quotes",
        ),
        (
            "name = \"demo\"",
            "name = 2026-11-30",
            "1:8: name = 2026-11-30 is a date: give text in quotes",
        ),
        (
            "wait_s = 1",
            "allow_other_servers = \"yes\"",
            "28:23: guards.allow_other_servers = \"yes\" is text: give true or false, without quotes",
        ),
        (
            "wait_s = 1",
            "wait_s = \"x\"",
            "28:10: guards.wait_s = \"x\" is text: give a number, 0 to 864000",
        ),
        (
            "env = { LANG = \"C\" }",
            "env = { LANG = 1 }",
            "20:16: arm.env.LANG = 1 is a whole number: give text in quotes",
        ),
        (
            "env = { LANG = \"C\" }",
            "args = [\"-x\", 3]",
            "20:15: arm.args[1] = 3 is a whole number: give text in quotes",
        ),
        (
            "env = { LANG = \"C\" }",
            "args = \"-x\"",
            "20:8: arm.args = \"-x\" is text: give a list in brackets, each text in quotes",
        ),
        (
            "bodies = [\"coding/01.json\", \"coding/02.json\"]",
            "bodies = \"coding/01.json\"",
            "23:10: workload.bodies = \"coding/01.json\" is text: give a list in brackets, each text in quotes",
        ),
        (
            "seed = 7",
            "margin = 5",
            "3:10: margin = 5 is out of range: give a share between 0 and 1, such as 0.05 for 5%",
        ),
        (
            "seed = 7",
            "protocol = \"warm\"",
            "3:12: protocol = \"warm\" is text: give a table, under a line [protocol]",
        ),
    ] {
        assert_eq!(mistake(from, to), format!("study.toml:{says}"));
    }
    let message = mistake("seed = 7", "seed = ");
    assert!(message.starts_with("study.toml:3:"), "{message}");
}

#[test]
fn what_is_missing_is_named_where_it_should_be() {
    let message = mistake("script = \"mock.toml\"", "");
    let says = "study.toml:11:8: arm \"A\" needs `script`, the mock's timeline";
    assert_eq!(message, says);
    let message = mistake("kind = \"mock\"", "");
    let says = "study.toml:11:8: arm \"A\" has no kind: give `kind`, here or in [base]";
    assert!(message.starts_with(says), "{message}");
    let message = mistake("bodies = [\"coding/01.json\", \"coding/02.json\"]\n", "");
    let says =
        "study.toml:22:1: [workload] has no `bodies`: give a list in brackets, each text in quotes";
    assert_eq!(message, says);
    let folder = folder();
    let message = load(folder.path(), "name = \"x\"\n").unwrap_err();
    assert_eq!(
        message,
        "study.toml:1:1: there is no [[arm]]: what is compared\nstudy.toml:1:1: there is no [workload]: what is replayed"
    );
    let one = GOOD.split("[[arm]]\nname = \"B\"").next().unwrap();
    let one = format!("{one}[workload]\nbodies = [\"coding/01.json\"]\n");
    let message = load(folder.path(), &one).unwrap_err();
    let says = "study.toml:10:1: 1 arm given; a comparison needs at least two `[[arm]]` tables";
    assert_eq!(message, says);
}

#[test]
fn all_mistakes_are_told_in_the_order_in_which_they_stand() {
    let folder = folder();
    let text = GOOD
        .replace("wait_s = 1", "wait = 1")
        .replace("seed = 7", "seed = \"7\"");
    let message = load(folder.path(), &text).unwrap_err();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(lines[0].starts_with("study.toml:3:8: seed = \"7\" is text"));
    assert!(lines[1].starts_with("study.toml:28:1: unknown key `wait`"));
}

#[test]
fn placeholders_are_known_and_have_values() {
    let command = "command = [\"serve\", \"--port\", \"{port}\"]";
    for (to, says) in [
        (
            "command = [\"serve\", \"--port\", \"{prot}\"]",
            "19:31: {prot} is no placeholder; did you mean {port}?",
        ),
        (
            "command = [\"serve\", \"{port}\", \"-m\", \"{model}\"]",
            "19:37: arm \"B\" uses {model}, which nothing sets: give `model`, here or in [base]",
        ),
        (
            "command = [\"serve\", \"{port}\"]\nctx = 8\nargs = [\"{tree}/x\"]",
            "16:8: arm \"B\" uses {tree}, which nothing sets: give `build`, `rev` or both",
        ),
        (
            "command = [\"serve\", \"--port\", \"8080\"]",
            "19:11: the command of arm \"B\" has no {port}: each launch has a free port of its own, put in there, as \
             in `\"--port\", \"{port}\"`",
        ),
        (
            "command = [\"serve\", \"{port}\"]\nrev = \"HEAD\"",
            "19:11: arm \"B\" is built, and its command does not use {tree}, the folder that it is built in, as in \
             \"{tree}/target/release/server\"",
        ),
    ] {
        assert_eq!(mistake(command, to), format!("study.toml:{says}"));
    }
    let folder = folder();
    let json = "command = [\"serve\", \"{port}\", \"{threads}\", '{\"a\": {}}', \"{x}\"]";
    load(folder.path(), &GOOD.replace(command, json)).unwrap();
}

#[test]
fn arms_share_a_base_and_differ_by_what_they_list() {
    let text = "name = \"x\"\n[base]\nkind = \"openai\"\ncommand = [\"serve\", \"{port}\"]\nargs = [\"-a\"]\n\
                env = { X = \"1\", Y = \"2\" }\nhealth = \"/ready\"\n\
                [[arm]]\nname = \"A\"\n\
                [[arm]]\nname = \"B\"\nargs = [\"-b\"]\nenv = { Y = \"3\" }\n\
                [[arm]]\nname = \"C\"\nkind = \"mock\"\nscript = \"mock.toml\"\n\
                [workload]\nbodies = [\"coding/01.json\"]\n";
    let folder = folder();
    let arms = load(folder.path(), text).unwrap().arms;
    assert_eq!(arms[0].command, ["serve", "{port}"]);
    assert_eq!(arms[0].command, arms[1].command);
    assert_eq!(
        (arms[0].args.len(), &arms[1].args),
        (1, &vec!["-a".to_owned(), "-b".to_owned()])
    );
    assert_eq!(
        (arms[1].env["X"].as_str(), arms[1].env["Y"].as_str()),
        ("1", "3")
    );
    assert_eq!(arms[1].health, "/ready");
    // Another kind does not get the command.
    assert_eq!((arms[2].kind.name(), arms[2].command.len()), ("mock", 0));
    let unused = text.replace("health = \"/ready\"", "script = \"mock.toml\"");
    let unused = unused.replace("kind = \"mock\"\nscript = \"mock.toml\"\n[w", "[w");
    let message = load(folder.path(), &unused).unwrap_err();
    let says = "study.toml:7:10: `script` is for arms of kind mock; no arm is";
    assert_eq!(message, says);
}

#[test]
fn a_body_without_a_stream_is_named_before_anything_runs() {
    let folder = folder();
    fs::write(folder.path().join("coding/02.json"), "{\"messages\": []}").unwrap();
    let message = load(folder.path(), GOOD).unwrap_err();
    let says = "study.toml:23:29: body coding/02.json does not ask for a stream, so nothing of it could be timed: give \
                it `\"stream\": true`";
    assert_eq!(message, says);
}

#[test]
fn a_number_out_of_range_says_the_range_and_where() {
    for written in ["-1", "18446744073709551616"] {
        let message = mistake("seed = 7", &format!("seed = {written}"));
        let range = "is out of range: give 0 to 18446744073709551615";
        assert_eq!(message, format!("study.toml:3:8: seed = {written} {range}"));
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
