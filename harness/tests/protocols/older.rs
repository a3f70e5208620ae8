//! Archives of older versions of the format still read and render; that they pass the audit
//! is tested with the committed archives.

use std::path::{Path, PathBuf};

use palindrome_harness::archive::{Archive, SCHEMA};
use palindrome_harness::report::write;

/// Sealed archives that are kept in the repository.
fn kept() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let archives = root.parent().unwrap().join("archives");
    let entries = std::fs::read_dir(archives).unwrap();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("SEAL").is_file())
        .collect();
    found.sort();
    found
}

#[test]
fn every_archive_that_is_kept_renders() {
    let kept = kept();
    assert!(!kept.is_empty());
    let mut older = 0;
    for path in kept {
        let archive = Archive::open(&path).unwrap();
        older += usize::from(archive.plan().schema != SCHEMA);
        let reports = tempfile::tempdir().unwrap();
        let page = write(&archive, reports.path()).unwrap();
        assert!(std::fs::metadata(page.html).unwrap().len() > 10_000);
    }
    assert!(older > 0, "none is of an older version");
}
