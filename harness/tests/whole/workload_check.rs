//! Tokens counted with the small model's own tokenizer, by the real engine.

use serde_json::Value;

use crate::support::{Room, engine, model, root};

/// Prompt tokens of what a check was about, which must be fair and counted.
fn counted(what: &str) -> Vec<u64> {
    engine();
    let what = root().join("workloads").join(what).display().to_string();
    let room = Room::new();
    let ran = room.run(&[
        "workload",
        "check",
        &what,
        "--json",
        "--model",
        &model().display().to_string(),
    ]);
    let said: Value = serde_json::from_str(&ran.expect(0).out).unwrap();
    let one = |body: &Value| {
        let counts = &body["prompt_tokens"];
        assert_eq!(counts["label"], "MEASURED");
        counts["tokens"].as_u64().unwrap()
    };
    said["bodies"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn the_small_contexts_sizes_are_those_of_the_readme_and_fit_the_model() {
    let sizes = counted("small-context.toml");
    let readme = std::fs::read_to_string(root().join("workloads/README.md")).unwrap();
    let all: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    assert!(
        readme.contains(&all.join(", ")),
        "README.md lacks {}",
        all.join(", ")
    );
    assert!(sizes.iter().all(|n| n + 256 <= 16384), "{sizes:?}");
    assert!((12_500..13_500).contains(&sizes[0]), "{sizes:?}");
}
