//! `setup` and `doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Room, llama_cpp};

#[test]
fn a_given_server_is_used_as_it_is() {
    let room = Room::new();
    let program = room.write("llama-server", "#!/bin/sh\necho 'version: 1 (abc)'\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("own file");
    let path = program.to_str().expect("utf-8");
    let run = |args: &[&str]| {
        let mut command = room.command(args);
        command.env("PALINDROME_CACHE", room.path("cache"));
        crate::support::Ran::of(&command.output().expect("the program starts"))
    };
    let ran = run(&["setup", "llama-cpp", "--llama-server", path, "--json"]).expect(0);
    let record: serde_json::Value = serde_json::from_str(&ran.out).expect("one JSON object");
    assert_eq!(record["kind"], "path");
    assert_eq!(record["program"], path);
    let missing = run(&["setup", "llama-cpp", "--llama-server", "/no/such/file"]).expect(2);
    assert!(missing.err.contains("/no/such/file"), "{}", missing.err);
}

#[test]
fn without_python_it_says_what_to_install() {
    let room = Room::new();
    let mut command = room.command(&["setup", "llama-cpp"]);
    command
        .env("PATH", room.path("empty"))
        .env("PALINDROME_CACHE", room.path("cache"));
    let ran = crate::support::Ran::of(&command.output().expect("the program starts")).expect(96);
    assert!(ran.err.contains("install python3"), "{}", ran.err);
}

#[test]
fn the_wheel_is_recorded_with_its_features_and_hash() {
    let server = llama_cpp();
    assert_eq!(server.binary_sha256.len(), 64);
    assert!(!server.features.is_empty(), "{server:?}");
    assert!(server.program.is_file());
}

#[test]
fn doctor_says_whether_studies_can_run() {
    llama_cpp();
    let room = Room::new();
    let ran = room.run(&["doctor", "--json"]).expect(0);
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("one JSON object");
    assert_eq!(found["usable"], true);
    let names: Vec<&str> = found["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|check| check["name"].as_str())
        .collect();
    assert!(
        names.contains(&"python") && names.contains(&"llama.cpp"),
        "{names:?}"
    );
}
