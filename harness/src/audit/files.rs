//! Seal, manifest, hashes; nothing missing, nothing extra.

use std::collections::BTreeSet;

use super::Audit;
use super::words::differ;
use crate::archive::{
    Archive, PREDICATE_TYPE, PublicKey, STATEMENT_TYPE, SessionSummary, check_seal,
    check_signature, check_sums, hash_file, is_outside_manifest, list_files, session_folder_name,
};

/// Whether the study did not come to its end: sealing writes figures, manifest, sums and seal, in
/// that order, and here the last of them are not there.
pub(super) fn is_unfinished(archive: &Archive) -> bool {
    let lacks = |name: &str| !archive.path().join(name).exists();
    lacks("SEAL") && lacks("manifest.json")
}

/// Checks every file of the archive against manifest and seal, and the signature against the key, if
/// one is given.
pub(super) fn check(archive: &Archive, key: Option<&PublicKey>, audit: &mut Audit) {
    match check_seal(archive.path()) {
        Ok(None) => {}
        Ok(Some(problem)) => audit.fail("SEAL", "", problem),
        Err(error) => audit.fail_with(archive, "SEAL", &error),
    }
    match check_sums(archive.path(), archive.plan().minor() >= 2) {
        Ok(None) => {}
        Ok(Some((line, what))) => audit.fail("SHA256SUMS", line, what),
        Err(error) => audit.fail_with(archive, "SHA256SUMS", &error),
    }
    signature(archive, key, audit);
    let listed = match list_files(archive.path()) {
        Ok(listed) => listed,
        Err(error) => return audit.fail_with(archive, ".", &error),
    };
    match archive.manifest() {
        Ok(Some(manifest)) => {
            if manifest.statement != STATEMENT_TYPE {
                audit.fail(
                    "manifest.json",
                    "_type",
                    differ(manifest.statement, STATEMENT_TYPE),
                );
            }
            if manifest.predicate_type != PREDICATE_TYPE {
                audit.fail(
                    "manifest.json",
                    "predicateType",
                    differ(manifest.predicate_type, PREDICATE_TYPE),
                );
            }
            let mut named = BTreeSet::new();
            for subject in &manifest.subject {
                if !named.insert(subject.name.clone()) {
                    audit.fail("manifest.json", &subject.name, "is named twice");
                }
                if !listed.contains(&subject.name) {
                    audit.fail(
                        &subject.name,
                        "",
                        "is in the manifest but not in the archive",
                    );
                    continue;
                }
                let expected = subject.digest.get("sha256").map_or("", String::as_str);
                match hash_file(&archive.path().join(&subject.name)) {
                    Ok(found) if found == expected => {}
                    Ok(found) => audit.fail(
                        &subject.name,
                        "sha256",
                        format!("{} by manifest.json", differ(found, expected)),
                    ),
                    Err(error) => audit.fail(&subject.name, "", format!("cannot read it: {error}")),
                }
                audit.files += 1;
            }
            for file in listed.iter().filter(|f| !is_outside_manifest(f)) {
                if !named.contains(file) {
                    audit.fail(file, "", "is in the archive but not in the manifest");
                }
            }
        }
        Ok(None) => audit.fail("manifest.json", "", "is missing"),
        Err(error) => audit.fail_with(archive, "manifest.json", &error),
    }
}

fn signature(archive: &Archive, key: Option<&PublicKey>, audit: &mut Audit) {
    const FILE: &str = "manifest.json.minisig";
    match check_signature(&archive.path().join("manifest.json"), key) {
        Ok(None) if key.is_some() => {
            audit.fail(FILE, "", "is missing: the archive is not signed");
        }
        Ok(signed) => audit.signature = signed,
        Err((field, what)) => audit.fail(FILE, field, what),
    }
}

/// Each session's own list of hashes, written when it was committed.
pub(super) fn sessions(archive: &Archive, audit: &mut Audit) {
    for planned in &archive.plan().sessions {
        let name = session_folder_name(planned);
        let folder = archive.path().join("sessions").join(&name);
        if folder.is_dir()
            && let Err(problem) = SessionSummary::verify(&folder, planned)
        {
            audit.fail(format!("sessions/{name}"), "", problem);
        }
    }
}
