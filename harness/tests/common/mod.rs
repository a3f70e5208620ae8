//! A folder with a study over mock servers.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use palindrome_harness::archive::ArchiveWriter;
use palindrome_harness::server::Programs;
use palindrome_harness::session::{Cancel, RunError, RunOptions, Silent, run};
use palindrome_harness::study::Study;

/// A study in a temporary folder of its own, with its own lock.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub options: RunOptions,
}

impl Bench {
    /// `head` goes above the tables, `tail` below them; `scripts` are the mocks of arms A, B ...
    pub fn new(head: &str, tail: &str, scripts: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let quartets = if head.contains("quartets") {
            ""
        } else {
            "quartets = 1\n"
        };
        let mut study = format!("name = \"mocked\"\n{quartets}{head}\n");
        for (name, script) in ["A", "B", "C"].iter().zip(scripts) {
            let file = format!("{name}.toml");
            fs::write(at(&file), script).unwrap();
            writeln!(
                study,
                "[[arm]]\nname = \"{name}\"\nkind = \"mock\"\nscript = \"{file}\""
            )
            .unwrap();
        }
        study.push_str("[guards]\nallow_other_servers = true\nwait_s = 0\n[workload]\nbodies = [\"one.json\", \"two.json\"]\n");
        study.push_str(tail);
        fs::write(at("study.toml"), study).unwrap();
        fs::write(at("one.json"), "{\"stream\": true, \"messages\": []}").unwrap();
        fs::write(at("two.json"), "{\"stream\": true, \"messages\": [1]}").unwrap();
        let options = RunOptions {
            archives: at("archives"),
            resume: None,
            programs: Programs {
                palindrome: Some(PathBuf::from(env!("CARGO_BIN_EXE_palindrome"))),
                ..Programs::default()
            },
            hash_cache: Some(std::env::temp_dir().join("palindrome-test-hashes.json")),
            builds: at("builds"),
            rehash: false,
            lock: at("lock"),
            checkout: folder.path().to_path_buf(),
            versions: BTreeMap::new(),
        };
        Self { folder, options }
    }

    pub fn study(&self) -> Study {
        Study::load(&self.folder.path().join("study.toml")).unwrap()
    }

    pub fn script(&self, arm: &str, script: &str) {
        fs::write(self.folder.path().join(format!("{arm}.toml")), script).unwrap();
    }

    pub fn run(&self) -> Result<ArchiveWriter, RunError> {
        run(&self.study(), &self.options, &Cancel::new(), &Silent)
    }

    /// The error of a run that must fail.
    pub fn fail(&self) -> RunError {
        match self.run() {
            Ok(_) => panic!("the study was expected to fail"),
            Err(error) => error,
        }
    }
}

/// `events.jsonl` as (kind, detail).
pub fn events(archive: &Path) -> Vec<(String, serde_json::Value)> {
    let text = fs::read_to_string(archive.join("events.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            (
                event["kind"].as_str().unwrap().to_owned(),
                event["detail"].clone(),
            )
        })
        .collect()
}

/// Lines of a JSON-lines file.
pub fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> Vec<T> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

/// Whether a process still exists (a zombie does not count).
pub fn is_alive(pid: u64) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "))
}
