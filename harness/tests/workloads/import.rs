//! Imported files.

use std::fs;
use std::path::{Path, PathBuf};

use palindrome_harness::study::{Protocol, Study};
use palindrome_harness::workload::Folder;
use serde_json::{Value, json};

use crate::support::{Ran, palindrome};

struct Room(tempfile::TempDir);

impl Room {
    fn with(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("in"), text).unwrap();
        Self(dir)
    }

    fn import(&self, format: &str, more: &[&str]) -> Ran {
        let args = [
            &[
                "workload", "import", "in", "--out", "out", "--format", format,
            ],
            more,
        ]
        .concat();
        palindrome(self.0.path(), &args)
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }

    fn bodies(&self) -> Vec<Value> {
        let folder = Folder::read(&self.out()).unwrap();
        assert_eq!(folder.notes, Vec::<String>::new());
        let read = |file: &str| fs::read(folder.path.join(file)).unwrap();
        folder
            .bodies
            .iter()
            .map(|b| serde_json::from_slice(&read(&b.file)).unwrap())
            .collect()
    }

    /// The message of an import that fails and leaves nothing.
    #[track_caller]
    fn refused(&self, format: &str) -> String {
        let ran = self.import(format, &[]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        let left: Vec<_> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(left, ["in"]);
        ran.err
    }
}

fn texts(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|m| m["content"].as_str().unwrap())
        .collect()
}

const SHAREGPT: &str = r#"[
 {"id": "a", "conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "one"},
   {"from": "gpt", "value": "two"}, {"from": "human", "value": "three"}, {"from": "gpt", "value": "four"}]},
 {"id": "b", "conversations": [{"from": "human", "value": "a much longer question than that"}]}
]
"#;

#[test]
fn sharegpt_conversations_become_requests_with_every_field() {
    let room = Room::with(SHAREGPT);
    let ran = room.import(
        "sharegpt",
        &["--temperature", "0.5", "--answer-tokens", "33"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("ASSUMED: 4 bytes a token"), "{}", ran.out);
    let bodies = room.bodies();
    assert_eq!(texts(&bodies[0]), ["s", "one", "two", "three"]);
    assert_eq!(bodies[0]["messages"][2]["role"], "assistant");
    assert_eq!(bodies.len(), 2);
    assert_eq!(
        (&bodies[0]["temperature"], &bodies[0]["max_tokens"]),
        (&json!(0.5), &json!(33))
    );
    assert_eq!(bodies[0]["ignore_eos"], json!(false));
    let checked = palindrome(room.0.path(), &["workload", "check", "out"]);
    assert_eq!(checked.code, Some(0), "{}", checked.out);
    let study = Study::load(&room.out().join("study.toml")).unwrap();
    assert_eq!(
        (study.workload.bodies.len(), study.protocol),
        (2, Protocol::Fresh)
    );
}

#[test]
fn turns_and_limits_choose_and_a_seed_chooses_again_the_same() {
    let turns = |which: &str| {
        let room = Room::with(SHAREGPT);
        room.import("sharegpt", &["--turns", which]);
        let bodies = room.bodies();
        bodies
            .iter()
            .map(|b| texts(b).join(" "))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        turns("first"),
        ["s one", "a much longer question than that"]
    );
    assert_eq!(
        turns("each"),
        [
            "s one",
            "s one two three",
            "a much longer question than that"
        ]
    );
    let room = Room::with(SHAREGPT);
    room.import("sharegpt", &["--min-tokens", "5"]);
    assert_eq!(
        texts(&room.bodies()[0]),
        ["a much longer question than that"]
    );
    let none = Room::with(SHAREGPT).import("sharegpt", &["--min-tokens", "500"]);
    assert!(
        none.code == Some(2) && none.err.contains("none of its 2 requests is left"),
        "{}",
        none.err
    );

    let line = |n: u32| format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{n}\"}}]}}");
    let many = (0..50).map(line).collect::<Vec<_>>().join("\n");
    let chosen = |seed: &str| {
        let room = Room::with(&many);
        room.import("jsonl", &["--choose", "6", "--choose-seed", seed]);
        let bodies = room.bodies();
        bodies
            .iter()
            .map(|b| texts(b)[0].parse::<u32>().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(chosen("1"), chosen("1"));
    assert_ne!(chosen("1"), chosen("2"));
    assert!(chosen("1").is_sorted() && chosen("1").len() == 6);
    let room = Room::with(&many);
    room.import("jsonl", &["--first", "3"]);
    assert_eq!(room.bodies().len(), 3);
}

/// Two requests that share their first block, one of another, and one of less than a block.
const MOONCAKE: &str = r#"{"timestamp": 1000, "input_length": 1100, "output_length": 50, "hash_ids": [0, 1, 2]}
{"timestamp": 1000, "input_length": 1024, "output_length": 9, "hash_ids": [0, 3]}
{"timestamp": 4500, "input_length": 1536, "output_length": 7, "hash_ids": [0, 1, 2]}
{"timestamp": 9000, "input_length": 10, "output_length": 7, "hash_ids": []}
"#;

#[test]
fn a_mooncake_trace_keeps_lengths_times_and_what_prompts_share() {
    let room = Room::with(MOONCAKE);
    let ran = room.import("mooncake", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("ASSUMED: 1 tokens a word"), "{}", ran.out);
    let bodies = room.bodies();
    let words = |n: usize| texts(&bodies[n])[0].split_whitespace().collect::<Vec<_>>();
    let lengths: Vec<usize> = (0..4).map(|n| words(n).len()).collect();
    assert_eq!(lengths, [1100, 1024, 1536, 10]);
    let shared = |a: usize, b: usize| {
        words(a)
            .iter()
            .zip(words(b))
            .take_while(|(x, y)| *x == y)
            .count()
    };
    // The first block and not the second; then all of the shorter one, whose last block is cut.
    assert!((512..520).contains(&shared(0, 1)), "{}", shared(0, 1));
    assert_eq!(shared(0, 2), 1100);
    assert!(shared(0, 3) < 10);
    assert_eq!(
        (&bodies[0]["max_tokens"], &bodies[0]["ignore_eos"]),
        (&json!(50), &json!(true))
    );
    let study = Study::load(&room.out().join("study.toml")).unwrap();
    let Protocol::Arrivals { times_ns, .. } = study.protocol else {
        panic!("{:?}", study.protocol);
    };
    assert_eq!(times_ns, [0, 0, 3_500_000_000, 8_000_000_000]);

    // Two tokens a word: half as many words, the same share.
    let room = Room::with(MOONCAKE);
    room.import(
        "mooncake",
        &["--tokens-per-word", "2", "--path", "/v1/completions"],
    );
    let bodies = room.bodies();
    let prompt = |n: usize| bodies[n]["prompt"].as_str().unwrap().to_owned();
    assert_eq!(prompt(1).split_whitespace().count(), 512);
    assert!(prompt(2).starts_with(&prompt(0)));
}

#[test]
fn transcripts_keep_their_messages_and_tools() {
    let line = json!({
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "found"},
            {"role": "assistant", "content": "done"},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    });
    let room = Room::with(&format!("\n{line}\n"));
    let ran = room.import("jsonl", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let body = &room.bodies()[0];
    assert_eq!(
        body["messages"].as_array().unwrap()[..],
        line["messages"].as_array().unwrap()[..3]
    );
    assert_eq!(body["tools"], line["tools"]);
    assert_eq!(
        Folder::read(&room.out()).unwrap().bodies[0]
            .line
            .as_ref()
            .unwrap()
            .source_line,
        Some(2)
    );
}

#[test]
fn bad_lines_are_named_and_nothing_is_left() {
    for (format, text, says) in [
        (
            "jsonl",
            "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n{\"mesages\":[]}\n",
            "in:2: no list `messages`; a line is",
        ),
        (
            "jsonl",
            "{\"messages\":[{\"role\":\"human\",\"content\":\"x\"}]}",
            "in:1: message 1 has the role \"human\"; one of system,",
        ),
        (
            "jsonl",
            "{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\"}]}",
            "in:1: the conversation has no turn of the user",
        ),
        (
            "jsonl",
            "\n\n{\"messages\": [}",
            "in:3: not JSON (column 15): expected value",
        ),
        (
            "sharegpt",
            "[{\"conversations\": []},\n 7\n]",
            "in:1: the conversation has no turn of the user",
        ),
        (
            "sharegpt",
            "[\n {\"conversations\": [{\"from\": \"martian\", \"value\": \"x\"}]}]",
            "in:2: turn 1 is from \"martian\"; one of human,",
        ),
        (
            "sharegpt",
            "[\n {\"conversations\": [{\"from\": \"gpt\", \"value\": \"x\"}]}]",
            "begins with an answer",
        ),
        ("sharegpt", "[\n{},", "in:2: not JSON"),
        (
            "mooncake",
            "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1, 2, 3]}",
            "3 hash_ids for input_length 600: blocks of 512 tokens make 2",
        ),
        (
            "mooncake",
            "{\"timestamp\": 0, \"input_length\": 0, \"output_length\": 1, \"hash_ids\": []}",
            "`input_length` is no whole number from 1",
        ),
        (
            "mooncake",
            "{\"timestamp\": \"x\"}",
            "`timestamp` is no number of milliseconds",
        ),
    ] {
        let error = Room::with(text).refused(format);
        assert!(error.contains(says), "{format} {text}\n{error}");
        assert!(error.contains("--skip-bad"), "{error}");
    }
    let room = Room::with("{}\n{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n[\n");
    let ran = room.import("jsonl", &["--skip-bad", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&said["bodies"], said["skipped"].as_array().unwrap().len()),
        (&json!(1), 2)
    );
    assert!(
        said["skipped"][1]
            .as_str()
            .unwrap()
            .starts_with("line 3: not JSON")
    );
}

#[test]
fn a_folder_that_holds_something_is_left_alone() {
    let room = Room::with(MOONCAKE);
    fs::create_dir(room.out()).unwrap();
    fs::write(room.out().join("mine"), "x").unwrap();
    let ran = room.import("mooncake", &[]);
    assert!(
        ran.code == Some(2) && ran.err.contains("out is not empty"),
        "{}",
        ran.err
    );
    assert_eq!(fs::read_dir(room.out()).unwrap().count(), 1);
    assert!(Path::new(&room.out().join("mine")).is_file());
    fs::remove_file(room.out().join("mine")).unwrap();
    assert_eq!(
        room.import("mooncake", &[]).code,
        Some(0),
        "an empty folder is taken"
    );
}
