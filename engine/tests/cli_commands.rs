//! The commands `run`, `info`, `verify` and wrong arguments.
#![allow(missing_docs, reason = "tests")]

mod support;

use serde_json::Value;
use support::{Model, output, stderr, stdout};

#[test]
fn run_streams_text_and_reports_figures() {
    let model = Model::tiny();
    let args = [
        "run",
        model.arg(),
        "-p",
        "def add(",
        "-n",
        "8",
        "--ctx",
        "256",
    ];
    let (one, two) = (output(&args), output(&args));
    assert!(one.status.success(), "{}", stderr(&one));
    assert_eq!(one.stdout, two.stdout);
    assert!(
        stderr(&one).contains("answer: 8 tokens, 7 intervals"),
        "{}",
        stderr(&one)
    );
    let chat = output(&[
        "run",
        model.arg(),
        "-p",
        "hi",
        "--chat",
        "-n",
        "4",
        "--ctx",
        "512",
    ]);
    assert!(chat.status.success(), "{}", stderr(&chat));
}

#[test]
fn info_tells_the_same_facts_to_people_and_programs() {
    let model = Model::tiny();
    let facts: Value =
        serde_json::from_slice(&output(&["info", model.arg(), "--json"]).stdout).unwrap();
    assert_eq!(facts["architecture"], "gpt-oss");
    assert_eq!(facts["chat_template"], "harmony");
    assert_eq!(facts["metadata"]["gpt-oss.expert_count"], 8);
    let types: Vec<&str> = facts["by_type"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["type"].as_str().unwrap())
        .collect();
    assert!(types.contains(&"MXFP4"), "{types:?}");
    let text = stdout(&output(&["info", model.arg()]));
    assert!(text.starts_with("architecture   gpt-oss\n"), "{text}");
    assert!(text.contains("\n  gpt-oss.expert_count = 8\n"), "{text}");
}

#[test]
fn verify_finds_nothing_in_a_sound_file_and_a_bad_scale_in_another() {
    let model = Model::tiny();
    let sound = output(&["verify", model.arg()]);
    assert_eq!(
        sound.status.code(),
        Some(0),
        "{}{}",
        stdout(&sound),
        stderr(&sound)
    );
    let text = stdout(&sound);
    assert!(
        text.contains("ok       kernels: every instruction-set level gives the same bits"),
        "{text}"
    );
    assert!(text.contains("sha256   "), "{text}");

    let facts: Value =
        serde_json::from_slice(&output(&["info", model.arg(), "--json"]).stdout).unwrap();
    let tensors = facts["tensors"].as_array().unwrap();
    let experts = tensors
        .iter()
        .find(|tensor| tensor["type"] == "MXFP4")
        .unwrap();
    let mut bytes = std::fs::read(&model.path).unwrap();
    bytes[experts["offset"].as_u64().unwrap() as usize] = 255;
    let broken = model.folder.path().join("broken.gguf");
    std::fs::write(&broken, bytes).unwrap();
    // A store of the sound one, which other kernels read; and the same scale in it.
    let store = model.folder.path().join("m.store");
    let store_arg = store.to_str().unwrap();
    assert_eq!(
        output(&["pack", model.arg(), "-o", store_arg])
            .status
            .code(),
        Some(0)
    );
    let text = stdout(&output(&["verify", store_arg]));
    assert!(
        text.contains("ok       values") && text.contains("ok       kernels"),
        "{text}"
    );
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[4096 + experts["offset"].as_u64().unwrap() as usize] = 255;
    std::fs::write(&store, bytes).unwrap();
    let found = output(&["verify", store_arg]);
    assert_eq!(found.status.code(), Some(1), "{}", stdout(&found));
    assert!(stdout(&found).contains(experts["name"].as_str().unwrap()));

    let found = output(&["verify", broken.to_str().unwrap()]);
    assert_eq!(found.status.code(), Some(1), "{}", stdout(&found));
    let told = stdout(&found) + &stderr(&found);
    assert!(
        told.contains("E8M0") && told.contains(experts["name"].as_str().unwrap()),
        "{told}"
    );
}

#[test]
fn wrong_arguments_are_code_2_and_wrong_values_code_1() {
    assert_eq!(output(&["serve"]).status.code(), Some(2));
    assert_eq!(
        output(&["serve", "m.gguf", "--prot", "1"]).status.code(),
        Some(2)
    );
    assert_eq!(
        output(&["serve", "m.gguf", "--port", "70000"])
            .status
            .code(),
        Some(2)
    );
    let isa = output(&["run", "m.gguf", "-p", "x", "--isa", "abacus"]);
    assert_eq!(isa.status.code(), Some(1));
    assert!(
        stderr(&isa).starts_with("error: this machine has no instruction-set level \"abacus\"\n  hint: --isa takes scalar"),
        "{}",
        stderr(&isa)
    );
    let version = stdout(&output(&["--version"]));
    assert!(
        version.starts_with("palindrome-engine 0.1.0 (isa "),
        "{version}"
    );
}

#[test]
fn packing_replaces_nothing_but_stores() {
    let model = Model::tiny();
    let own = model.folder.path().join("precious.txt");
    std::fs::write(&own, "mine").unwrap();
    let own = own.to_str().unwrap();
    for (out, words) in [(own, "is no store"), (model.arg(), "is no store")] {
        let found = output(&["pack", model.arg(), "--force", "--out", out]);
        assert_eq!(found.status.code(), Some(1));
        assert!(stderr(&found).contains(words), "{}", stderr(&found));
    }
    assert_eq!(std::fs::read_to_string(own).unwrap(), "mine");
    let info = output(&["info", model.arg()]);
    assert_eq!(info.status.code(), Some(0), "{}", stderr(&info));
}

#[test]
fn what_cannot_be_compared_is_said_before_a_store_is_written() {
    let model = Model::tiny();
    let stores = model.folder.path().join("stores");
    for ways in ["theads=2", "layout=packd", "threads=x"] {
        let args = ["verify", model.arg(), "--against", ways, "--store-dir"];
        let found = output(&[&args[..], &[stores.to_str().unwrap()]].concat());
        assert_eq!(found.status.code(), Some(1), "{ways}");
        assert!(stderr(&found).contains("expected"), "{}", stderr(&found));
        assert!(!stores.exists(), "{ways}");
    }
    // And only those that the ways need.
    let args = [
        "verify",
        model.arg(),
        "--prompts",
        "5",
        "--steps",
        "1",
        "--store-dir",
    ];
    let args = [&args[..], &[stores.to_str().unwrap(), "--against"]].concat();
    for (ways, count) in [("threads=1", 1), ("layout=all", 2)] {
        let found = output(&[&args[..], &[ways]].concat());
        assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
        assert_eq!(std::fs::read_dir(&stores).unwrap().count(), count, "{ways}");
    }
}

#[test]
fn a_layout_that_cannot_be_made_is_named() {
    let model = Model::tiny();
    let file = model.folder.path().join("no-folder");
    std::fs::write(&file, "").unwrap();
    for layout in ["store", "packed-scales"] {
        let way = format!("layout={layout}");
        let args = ["verify", model.arg(), "--prompts", "5", "--steps", "1"];
        let more = ["--store-dir", file.to_str().unwrap(), "--against", &way];
        let found = output(&[&args[..], &more].concat());
        assert_eq!(found.status.code(), Some(1), "{way}");
        let words = format!("no file of layout={layout} can be made");
        assert!(stderr(&found).contains(&words), "{}", stderr(&found));
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure_of_the_program() {
    let model = Model::tiny();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = support::engine();
    let flags = ["--prompts", "5", "--steps", "1", "--no-store"];
    command.args(["verify", model.arg(), "--against", "isa=scalar"]);
    command.args(flags).stdout(writer);
    let found = command
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    assert!(!stderr(&found).contains("panicked"), "{}", stderr(&found));
    // As a shell has it for a program that SIGPIPE ended: no exit code of its own.
    assert_eq!(found.status.code(), Some(141));
}
