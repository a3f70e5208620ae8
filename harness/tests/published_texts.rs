//! What this repository publishes: every marked number follows from its archive, and the log stands as
//! it was written. The checks themselves, on texts that are wrong.

use std::fs;
use std::path::{Path, PathBuf};

use palindrome_harness::archive::Archive;
use palindrome_harness::claims::{Kept, check, claims};
use palindrome_harness::log::Log;

mod archive_fixture;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn every_marked_number_of_the_repository_follows_from_its_archive() {
    let mut kept = Kept::new(root().join("archives"));
    for file in ["README.md", "engine/README.md"] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let checked = check(&text, &mut kept);
        assert_eq!(checked.findings, [], "{file}");
        assert!(
            checked.blocks >= 1 && checked.numbers >= 6,
            "{file}: {checked:?}"
        );
    }
}

#[test]
fn the_log_stands_as_it_was_written() {
    let log = Log::open(&root().join("reports/log.md")).unwrap();
    assert!(log.records >= 4, "{}", log.records);
}

#[test]
fn what_a_claim_writes_passes_and_every_change_of_it_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = archive_fixture::sealed(folder.path(), &[true, false]);
    let archive = Archive::open(&path).unwrap();
    let figures = archive.figures().unwrap().unwrap();
    let (made, without) = claims(&archive, &figures).unwrap();
    assert_eq!((made.len(), without.len()), (4, 0));
    let name = archive.name();
    let first = &made[0].sentence;
    for says in [
        "Decode rate of llama.cpp: ",
        " tok/s (CALCULATED), against ",
        " of palindrome-engine; ",
        "95% interval",
        "by 4 pairs of sessions (CALCULATED",
        "`model.gguf`",
        "`Test CPU, 2 CPUs`",
        "2026-11-30",
        &name,
    ] {
        assert!(first.contains(says), "no {says:?} in {first}");
    }
    let text: String = made.iter().map(|claim| claim.marked() + "\n").collect();
    let mut kept = Kept::new(folder.path());
    let checked = check(&text, &mut kept);
    assert_eq!(
        (checked.blocks, checked.findings.as_slice()),
        (4, [].as_slice())
    );
    assert_eq!(checked.numbers, 20, "five figures a sentence");

    let ratio = figures.value("compare/B-over-A/decode_rate/ratio").unwrap();
    let shown = format!("; {ratio:.3} times as much");
    assert!(text.contains(&shown), "{shown} in {text}");
    let wrong = format!("; {:.3} times as much", ratio + 0.001);
    for (changed, says) in [
        (text.replacen(&shown, &wrong, 1), "rounded alike it is"),
        (
            text.replacen(
                "2026-11-30, archive",
                "2026-11-30 after 7 tries, archive",
                1,
            ),
            "the block shows 8 numbers and its mark names 7",
        ),
        (
            text.replacen("arm/B/decode_rate", "arm/B/decode_rats", 1),
            "has no figure arm/B/decode_rats",
        ),
        (
            text.replacen("=95", "=99", 1),
            "95 stands where the mark says =99",
        ),
        (
            text.replacen(
                &format!("archive={name}"),
                "archive=20200101T000000Z-gone-1",
                1,
            ),
            "there is no archive",
        ),
        (
            text.replacen("<!-- palindrome:end -->", "", 1),
            "the next block begins before this one ends",
        ),
    ] {
        assert_ne!(changed, text, "{says}");
        let findings = check(&changed, &mut kept).findings;
        assert!(
            findings.iter().any(|f| f.what.contains(says)),
            "no {says:?} in {findings:?}"
        );
    }

    // An archive that does not hold gives no number.
    let events = path.join("events.jsonl");
    let mut bytes = fs::read(&events).unwrap();
    bytes[40] ^= 1;
    fs::write(&events, bytes).unwrap();
    let findings = check(&text, &mut Kept::new(folder.path())).findings;
    assert_eq!(findings.len(), 4);
    assert!(findings[0].what.contains("fails its audit"), "{findings:?}");
}
