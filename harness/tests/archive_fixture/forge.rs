//! What a forger does to an archive, and whether the audit catches it.

use std::fs;
use std::path::Path;

use super::copy;
use palindrome_harness::archive::{
    Archive, hash_file, list_files, manifest_bytes, sha256_hex, sums,
};
use palindrome_harness::audit::audit;

/// Runs `mutate` on a fresh copy and expects the audit to fail, naming a file with `names` in it.
pub fn caught(original: &Path, what: &str, names: &str, mutate: impl FnOnce(&Path)) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(original.file_name().unwrap());
    copy(original, &path);
    mutate(&path);
    match audit(&path) {
        Ok(found) => {
            assert!(!found.passed(), "not caught: {what}");
            let text = found.to_string();
            assert!(
                text.contains(names),
                "{what}: no mismatch names {names:?}:\n{text}"
            );
        }
        // plan.json itself may have become unreadable: a refusal is a catch too.
        Err(error) => assert!(error.to_string().contains("plan.json"), "{what}: {error}"),
    }
}

/// What a forger does after an edit: every hash made to match again, bottom up.
pub fn reseal(path: &Path) {
    let archive = Archive::open(path).unwrap();
    for planned in &archive.plan().sessions {
        let folder = path
            .join("sessions")
            .join(palindrome_harness::archive::session_folder_name(planned));
        let file = folder.join("session.json");
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let mut summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut files = serde_json::Map::new();
        for name in list_files(&folder).unwrap() {
            if name != "session.json" {
                let hash = hash_file(&folder.join(&name)).unwrap();
                files.insert(name, hash.into());
            }
        }
        summary["files"] = files.into();
        fs::write(
            &file,
            serde_json::to_vec_pretty(&summary)
                .map(|mut b| {
                    b.push(b'\n');
                    b
                })
                .unwrap(),
        )
        .unwrap();
    }
    rechain(path);
    reseal_manifest(path);
}

/// The run's log with each commit's hash brought up to date and the chain linked again.
fn rechain(path: &Path) {
    let text = fs::read_to_string(path.join("events.jsonl")).unwrap();
    let mut previous = "0".repeat(64);
    let mut out = String::new();
    for line in text.lines() {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        if event["kind"] == "session-committed" {
            let session = event["detail"]["session"].as_str().unwrap().to_string();
            if let Ok(hash) = hash_file(&path.join("sessions").join(session).join("session.json")) {
                event["detail"]["session_json_sha256"] = hash.into();
            }
        }
        event["previous"] = previous.into();
        let line = event.to_string();
        previous = sha256_hex(line.as_bytes());
        out.push_str(&line);
        out.push('\n');
    }
    fs::write(path.join("events.jsonl"), out).unwrap();
}

/// The manifest and the seal made to match.
pub fn reseal_manifest(path: &Path) {
    let figures = Archive::open(path).unwrap().figures().unwrap().unwrap();
    let manifest = manifest_bytes(path, figures.verdict()).unwrap();
    fs::write(path.join("manifest.json"), &manifest).unwrap();
    if path.join("SHA256SUMS").exists() {
        fs::write(path.join("SHA256SUMS"), sums(&manifest).unwrap()).unwrap();
    }
    fs::write(
        path.join("SEAL"),
        format!("{}  manifest.json\n", sha256_hex(&manifest)),
    )
    .unwrap();
}

/// Changes the text of a file.
pub fn edit(path: &Path, file: &str, change: impl FnOnce(&str) -> String) {
    let before = fs::read_to_string(path.join(file)).unwrap();
    let after = change(&before);
    assert_ne!(before, after, "the mutation of {file} changed nothing");
    fs::write(path.join(file), after).unwrap();
}
