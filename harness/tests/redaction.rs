//! What must not be published is not in an archive: secrets, and the home folder's path.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::Bench;
use palindrome_harness::archive::list_files;
use palindrome_harness::audit::audit;

const SECRET: &str = "hf_very-secret-value";

/// `palindrome run` with a home folder and a secret in its environment.
fn run(home: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_palindrome"))
        .args(["run", "study.toml", "--out", "archives", "--yes"])
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("HF_TOKEN", SECRET)
        .env("PALINDROME_LOCK", home.join("lock"))
        .output()
        .unwrap()
}

#[test]
fn neither_secrets_nor_the_home_folder_are_in_an_archive() {
    let script = "[[reply]]\nprompt_ms = 1\ntokens = 3\ngap_ms = 1\n";
    let bench = Bench::new("", "", &[script, script]);
    let home = bench.folder.path();
    // A server that prints both, and is given both.
    let own = env!("CARGO_BIN_EXE_palindrome");
    let shell = format!(
        "echo \"token $HF_TOKEN, home $HOME\"; exec {own} mock-server --port {{port}} --script {}/A.toml",
        home.display()
    );
    let study = fs::read_to_string(home.join("study.toml")).unwrap();
    let study = study.replace(
        "kind = \"mock\"\nscript = \"A.toml\"",
        &format!(
            "kind = \"openai\"\ncommand = [\"sh\", \"-c\", '''{shell}''', \"--api-key\", \"{SECRET}\"]\nenv = {{ CACHE = \"x\", API_KEY = \"short\" }}"
        ),
    );
    assert!(study.contains("openai"));
    fs::write(home.join("study.toml"), study).unwrap();
    let out = run(home);
    let failed = String::from_utf8_lossy(&out.stderr);
    let archive = fs::read_dir(home.join("archives")).unwrap().next();
    let archive = archive
        .unwrap_or_else(|| panic!("{failed}"))
        .unwrap()
        .path();
    assert!(archive.join("SEAL").is_file(), "{failed}");
    let mut logs = 0;
    for file in list_files(&archive).unwrap() {
        // The study file is kept as it is.
        if file == "study.toml" {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(archive.join(&file)).unwrap()).into_owned();
        assert!(!text.contains(SECRET), "{file} holds the secret");
        assert!(
            !text.contains(home.to_str().unwrap()),
            "{file} names the home folder:\n{text}"
        );
        if file.ends_with("-A/server.log") {
            assert!(
                text.contains("token [redacted], home ~\n"),
                "{file}: {text}"
            );
            logs += 1;
        }
        if file.ends_with("-A/launch.json") {
            for part in [
                "--script ~/A.toml",
                "\"--api-key\",\n    \"[redacted]\"",
                "\"API_KEY\": \"[redacted]\"",
            ] {
                assert!(text.contains(part), "{file} {part}: {text}");
            }
        }
    }
    assert!(logs >= 2);
    // Its commands are still those of the study, wherever it is audited.
    let found = audit(&archive).unwrap();
    assert_eq!(found.mismatches, [], "{found}");
}

#[test]
fn a_study_file_with_a_secret_is_refused_before_anything_runs() {
    let script = "[[reply]]\ntokens = 1\n";
    let bench = Bench::new("", "", &[script, script]);
    let home = bench.folder.path();
    let study = fs::read_to_string(home.join("study.toml")).unwrap();
    let with = format!("script = \"A.toml\"\nenv = {{ HF_TOKEN = \"{SECRET}\" }}");
    fs::write(
        home.join("study.toml"),
        study.replace("script = \"A.toml\"", &with),
    )
    .unwrap();
    let out = run(home);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(
        said.contains("export HF_TOKEN=...") && !said.contains(SECRET),
        "{said}"
    );
    assert!(!home.join("archives").exists());
}
