//! Archives that are kept in the repository, of whatever older format, still pass the audit, and the
//! index beside them holds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use palindrome_harness::archive::{Archive, SCHEMA, minor};
use palindrome_harness::audit::audit;
use palindrome_harness::shelf;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../archives")
}

#[test]
fn every_committed_archive_passes_the_audit() {
    let mut audited = 0;
    let mut formats = BTreeSet::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        // What runs leave lies here too, and may be under way; what is committed is sealed.
        if !path.join("SEAL").is_file() {
            continue;
        }
        let outcome = audit(&path).unwrap();
        assert!(outcome.passed(), "{}\n{outcome}", path.display());
        formats.insert(Archive::open(&path).unwrap().plan().minor());
        audited += 1;
    }
    assert!(audited >= 1, "no archive in {}", folder().display());
    // One of every older version at least, so that each goes on being read.
    let older: BTreeSet<u32> = (0..minor(SCHEMA)).collect();
    assert!(
        older.is_subset(&formats),
        "of {older:?} only {formats:?} are kept"
    );
}

#[test]
fn no_archive_of_the_index_was_removed_or_replaced() {
    let (index, found, _) = shelf::check(&folder(), None).unwrap();
    assert_eq!(found, []);
    assert!(index.entries.len() >= 2);
}
