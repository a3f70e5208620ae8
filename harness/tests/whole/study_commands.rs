//! Studies without writing a file by hand: `new`, and `run` with two commands.

use std::fs;

use crate::support::Room;

#[test]
fn a_new_study_runs_as_it_is_and_is_never_overwritten() {
    let room = Room::new();
    let made = room.run(&["new", "flash"]).expect(0);
    assert_eq!(made.out, "flash.toml\n");
    let dry = room.run(&["run", "--dry-run", "flash.toml"]).expect(0);
    for says in [
        "order    A (burn-in) | A B B A |",
        "sessions 13, each 3 requests of which 3 are scored",
        "duration not known for 13 sessions: no earlier archive",
        "--gap-ms 5",
    ] {
        assert!(dry.out.contains(says), "{says}: {}", dry.out);
    }
    // A line of an arm is what the arms differ by.
    let commands: Vec<&str> = dry
        .out
        .lines()
        .filter(|l| l.contains("mock-server"))
        .collect();
    let rest = commands[1]
        .trim_start_matches(['A', 'B', ' '])
        .strip_suffix(" --gap-ms 5");
    assert_eq!(rest, Some(commands[0].trim_start_matches(['A', 'B', ' '])));

    let text = fs::read_to_string(room.path("flash.toml")).expect("it was written");
    assert!(text.starts_with("#:schema ./flash/study.schema.json\n"));
    let refused = room.run(&["new", "flash.toml"]).expect(2);
    assert!(
        refused.err.contains("flash.toml is there already"),
        "{}",
        refused.err
    );
    fs::remove_file(room.path("flash.toml")).expect("removed");
    let refused = room.run(&["new", "flash"]).expect(2);
    assert!(
        refused.err.contains("mock.toml is there already"),
        "{}",
        refused.err
    );
    assert!(!room.path("flash.toml").exists());
    room.run(&["new", "in/another-folder/b.toml"]).expect(0);
    assert!(room.path("in/another-folder/b/1-chat.json").is_file());
    let refused = room.run(&["new", "a b"]).expect(2);
    assert!(
        refused.err.contains("is no name for a study"),
        "{}",
        refused.err
    );

    let quick = text
        .replace("quartets = 3 ", "quartets = 1 ")
        .replace("[guards]", "[guards]\nallow_other_servers = true");
    room.write("flash.toml", &quick);
    room.write(
        "flash/mock.toml",
        "[[reply]]\ntokens = 8\nprompt_ms = 2\ngap_ms = 1\n",
    );
    let ran = room.run(&["run", "flash.toml"]).expect(0);
    assert!(ran.out.contains("Decode rate"), "{}", ran.out);
    let dry = room.run(&["run", "--dry-run", "flash.toml"]).expect(0);
    assert!(
        dry.out
            .contains("sessions (CALCULATED from sessions MEASURED in archives/"),
        "{}",
        dry.out
    );
    let assumed = quick.replace("[base]\n", "assumed_session_s = 20\n[base]\n");
    room.write("flash.toml", &assumed);
    let dry = room
        .run(&["run", "--dry-run", "flash.toml", "--out", "elsewhere"])
        .expect(0);
    assert!(
        dry.out
            .contains("about 1 min 40 s for 5 sessions of 20.0 s (ASSUMED by the study file)"),
        "{}",
        dry.out
    );
}

/// A command that starts the mock.
fn mock(room: &Room, gap: &str) -> Vec<String> {
    let script = room.write("mock.toml", "[[reply]]\nprompt_ms = 2\ntokens = 8\n");
    let program = env!("CARGO_BIN_EXE_palindrome");
    let words = [program, "mock-server", "--port", "{port}", "--script"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.extend([
        script.display().to_string(),
        "--gap-ms".to_owned(),
        gap.to_owned(),
    ]);
    words
}

#[test]
fn two_commands_are_a_study_whose_archive_is_like_any_other() {
    let room = Room::new();
    let mut args: Vec<String> = ["run", "--quartets", "1", "--allow-other-servers", "--"]
        .map(str::to_owned)
        .to_vec();
    args.extend(mock(&room, "1"));
    args.push("---".to_owned());
    args.extend(mock(&room, "4"));
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    room.run(&words).expect(0);
    let archive = room.archive();
    let archived = archive.display().to_string();
    let name = archive
        .file_name()
        .expect("it has a name")
        .to_string_lossy();
    room.run(&["audit", &archived]).expect(0);
    let study = fs::read_to_string(archive.join("study.toml")).expect("archived");
    assert!(study.contains("--gap-ms"), "{study}");
    assert!(archive.join("workload/1-chat.json").is_file());
    // What was archived runs again as it is, with the archived requests.
    let again = archive.join("study.toml").display().to_string();
    let dry = room.run(&["run", "--dry-run", &again]).expect(0);
    assert!(
        dry.out.contains(name.as_ref()),
        "the sessions of the archive are seen: {}",
        dry.out
    );

    let body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true}";
    room.write("mine/one.json", body);
    room.write("mine/two.json", body);
    let with = [
        "run",
        "--bodies",
        "mine",
        "--quartets",
        "1",
        "--dry-run",
        "--",
    ];
    let with: Vec<&str> = with.into_iter().chain(words[5..].iter().copied()).collect();
    let dry = room.run(&with).expect(0);
    assert!(dry.out.contains("each 2 requests"), "{}", dry.out);
}

#[test]
fn a_quick_study_that_is_none_says_what_is_missing() {
    let room = Room::new();
    room.write("plain.json", "{}");
    for (args, says) in [
        (&["run"][..], "STUDY.toml"),
        (
            &["run", "--", "serve", "{port}"],
            "one command is no comparison",
        ),
        (
            &["run", "--", "serve", "{port}", "---"],
            "command B is empty",
        ),
        (
            &["run", "--", "---", "serve", "{port}"],
            "command A is empty",
        ),
        (
            &["run", "--", "serve", "{port}", "---", "serve", "8080"],
            "command B has no {port}",
        ),
        (
            &[
                "run",
                "--bodies",
                "none.json",
                "--",
                "serve",
                "{port}",
                "---",
                "serve",
                "{port}",
            ],
            "cannot read the body none.json",
        ),
        (
            &[
                "run",
                "--bodies",
                "plain.json",
                "--",
                "serve",
                "{port}",
                "---",
                "serve",
                "{port}",
            ],
            "plain.json does not ask for a stream",
        ),
        (
            &[
                "run",
                "--quartets",
                "0",
                "--",
                "serve",
                "{port}",
                "---",
                "serve",
                "{port}",
            ],
            "quartets = 0 measures nothing",
        ),
        (&["run", "x.toml", "--quartets", "2"], "cannot be used with"),
        (&["run", "x.toml", "--", "serve"], "cannot be used with"),
    ] {
        let ran = room.run(args).expect(2);
        assert!(ran.err.contains(says), "{says}: {}", ran.err);
    }
}

#[test]
fn what_is_no_archive_is_not_gone_on_with() {
    let room = Room::new();
    room.run(&["new", "s"]).expect(0);
    room.write("empty/note.txt", "");
    for (folder, says) in [
        ("empty", "there is no plan.json in it"),
        ("absent", "absent is no archive"),
    ] {
        let ran = room.run(&["run", "s.toml", "--resume", folder]).expect(2);
        assert!(ran.err.contains(says), "{}", ran.err);
    }
}
