//! What a forger does after an edit: every hash made to match again, bottom up.

use std::collections::BTreeMap;

use palindrome_harness::archive::{sha256_hex, sums};
use serde_json::{Value, json};

use super::sample::Files;

pub fn text(files: &Files, file: &str) -> String {
    String::from_utf8(files[file].clone()).unwrap()
}

pub fn value(files: &Files, file: &str) -> Value {
    serde_json::from_slice(&files[file]).unwrap()
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap();
    bytes.push(b'\n');
    bytes
}

/// Changes a JSON document.
pub fn document(files: &mut Files, file: &str, change: impl FnOnce(&mut Value)) {
    let mut document = value(files, file);
    change(&mut document);
    files.insert(file.into(), pretty(&document));
}

/// Changes a JSON line, counted from 0.
pub fn line(files: &mut Files, file: &str, at: usize, change: impl FnOnce(&mut Value)) {
    let mut lines: Vec<String> = text(files, file).lines().map(str::to_owned).collect();
    let mut value: Value = serde_json::from_str(&lines[at]).unwrap();
    change(&mut value);
    lines[at] = value.to_string();
    files.insert(file.into(), (lines.join("\n") + "\n").into_bytes());
}

/// Every hash of every file, from the sessions up to the seal.
pub fn reseal(files: &mut Files) {
    let sessions: Vec<String> = files
        .keys()
        .filter_map(|f| f.strip_suffix("session.json"))
        .map(str::to_owned)
        .collect();
    for folder in sessions {
        let hashes: BTreeMap<String, Value> = files
            .iter()
            .filter_map(|(f, bytes)| Some((f.strip_prefix(&folder)?, bytes)))
            .filter(|(f, _)| *f != "session.json")
            .map(|(f, bytes)| (f.to_owned(), sha256_hex(bytes).into()))
            .collect();
        document(files, &format!("{folder}session.json"), |summary| {
            summary["files"] = json!(hashes);
        });
    }
    rechain(files);
    reseal_manifest(files);
}

/// The run's log with each commit's hash brought up to date and the chain linked again.
pub fn rechain(files: &mut Files) {
    let mut previous = "0".repeat(64);
    let mut out = String::new();
    for (seq, line) in text(files, "events.jsonl").lines().enumerate() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        if event["kind"] == "session-committed" {
            let session = event["detail"]["session"].as_str().unwrap();
            if let Some(bytes) = files.get(&format!("sessions/{session}/session.json")) {
                event["detail"]["session_json_sha256"] = sha256_hex(bytes).into();
            }
        }
        event["seq"] = seq.into();
        event["previous"] = previous.into();
        let line = event.to_string();
        previous = sha256_hex(line.as_bytes());
        out.push_str(&line);
        out.push('\n');
    }
    files.insert("events.jsonl".into(), out.into_bytes());
}

/// Manifest, sums and seal.
pub fn reseal_manifest(files: &mut Files) {
    let outside = [
        "manifest.json",
        "manifest.json.minisig",
        "SHA256SUMS",
        "SEAL",
    ];
    let subjects: Vec<Value> = files
        .iter()
        .filter(|(file, _)| !outside.contains(&file.as_str()))
        .map(|(file, bytes)| json!({ "name": file, "digest": { "sha256": sha256_hex(bytes) } }))
        .collect();
    let (plan, host) = (value(files, "plan.json"), value(files, "host.json"));
    let verdict = value(files, "figures.json")["verdict"].clone();
    document(files, "manifest.json", |manifest| {
        manifest["subject"] = subjects.into();
        manifest["predicate"]["schema"] = plan["schema"].clone();
        manifest["predicate"]["plan"] = plan;
        manifest["predicate"]["host"] = host;
        manifest["predicate"]["verdict"] = verdict;
    });
    seal(files);
}

/// Sums and seal of the manifest as it is.
pub fn seal(files: &mut Files) {
    let manifest = files["manifest.json"].clone();
    if files.contains_key("SHA256SUMS") {
        files.insert("SHA256SUMS".into(), sums(&manifest).unwrap());
    }
    let seal = format!("{}  manifest.json\n", sha256_hex(&manifest));
    files.insert("SEAL".into(), seal.into_bytes());
}
