//! Archives that are kept in the repository, of whatever older format, still pass the audit.

use std::path::Path;

use palindrome_harness::audit::audit;

#[test]
fn every_committed_archive_passes_the_audit() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../archives");
    let mut audited = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // What runs leave lies here too, and may be under way; what is committed is sealed.
        if !path.join("SEAL").is_file() {
            continue;
        }
        let outcome = audit(&path).unwrap();
        assert!(outcome.passed(), "{}\n{outcome}", path.display());
        audited += 1;
    }
    assert!(audited >= 1, "no archive in {}", folder.display());
}
