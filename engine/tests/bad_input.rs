//! Files that cannot be served, through the program: a clear line, code 1, no panic.
#![allow(missing_docs, reason = "tests")]

mod support;

use support::{Model, output, stderr, stdout};

/// Every command that opens a model refuses it in one line that holds `what`.
fn refused(path: &str, what: &str) {
    let commands: [&[&str]; 4] = [
        &["info", path],
        &["verify", path],
        &["run", path, "-p", "x"],
        &["serve", path, "--port", "0"],
    ];
    for command in commands {
        let outcome = output(command);
        let told = stderr(&outcome);
        assert_eq!(
            outcome.status.code(),
            Some(1),
            "{command:?}: {told}{}",
            stdout(&outcome)
        );
        assert!(!told.contains("panicked"), "{command:?}: {told}");
        let line = told.lines().find(|line| line.starts_with("error: "));
        let line = line.unwrap_or_else(|| panic!("{command:?}: {told}"));
        assert!(line.contains(what), "{command:?}: {line:?} lacks {what:?}");
        assert!(
            line.contains(path),
            "{command:?}: {line:?} does not name the file"
        );
    }
}

fn write(model: &Model, name: &str, bytes: &[u8]) -> String {
    let path = model.folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn files_that_are_no_models() {
    let model = Model::tiny();
    let sound = std::fs::read(&model.path).unwrap();
    refused(
        model.folder.path().join("absent.gguf").to_str().unwrap(),
        "No such file",
    );
    refused(&write(&model, "empty.gguf", b""), "");
    refused(
        &write(
            &model,
            "text.gguf",
            b"this is no model at all, only a little text",
        ),
        "",
    );
    let half = &sound[..sound.len() / 2];
    refused(&write(&model, "half.gguf", half), "");
    refused(&write(&model, "head.gguf", &sound[..100]), "");
    let mut absurd = sound.clone();
    absurd[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(&write(&model, "absurd.gguf", &absurd), "");
}

#[test]
fn models_that_are_no_language_models() {
    let model = Model::tiny();
    let mut other = std::fs::read(&model.path).unwrap();
    let name = b"token_embd.weight";
    let at = other
        .windows(name.len())
        .position(|window| window == name)
        .unwrap();
    other[at..at + name.len()].copy_from_slice(b"token_emby.weight");
    refused(&write(&model, "other.gguf", &other), "token_embd.weight");
}
