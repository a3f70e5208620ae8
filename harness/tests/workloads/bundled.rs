//! The sets that this repository brings: each passes the check, and each study's bodies are there.

use std::fs;
use std::path::{Path, PathBuf};

use palindrome_harness::workload::check::{Counter, gather, judge};

fn workloads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads")
}

fn unfair(what: &Path) -> Vec<String> {
    let gathered = gather(&[what.to_path_buf()]).unwrap();
    let counts = gathered
        .bodies
        .iter()
        .map(|b| Counter::Bytes.count(b, &|| false))
        .collect();
    let checked = judge(gathered, counts);
    let fair = checked.is_fair();
    let found: Vec<String> = checked.findings.into_iter().map(|f| f.what).collect();
    if fair { Vec::new() } else { found }
}

#[test]
fn every_set_and_every_study_passes_the_check() {
    let readme = fs::read_to_string(workloads().join("README.md")).unwrap();
    let (mut sets, mut studies) = (0, 0);
    for entry in fs::read_dir(workloads()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let bodies = |p: PathBuf| p.extension().is_some_and(|e| e == "json");
            if !fs::read_dir(&path)
                .unwrap()
                .any(|e| bodies(e.unwrap().path()))
            {
                continue;
            }
            sets += 1;
        } else if path.extension().is_some_and(|e| e == "toml") {
            studies += 1;
        } else {
            continue;
        }
        assert_eq!(unfair(&path), Vec::<String>::new(), "{name}");
        assert!(
            !path.is_dir() || readme.contains(&format!("`{name}/`")),
            "README.md lacks {name}"
        );
    }
    assert!(sets >= 8 && studies >= 7, "{sets} sets, {studies} studies");
}
