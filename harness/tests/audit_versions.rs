//! Audits stay true as the program grows: what an older `derive` published is compared with what
//! that version derives, and what newer ones add is counted.

mod archive_fixture;

use std::path::{Path, PathBuf};

use archive_fixture::forge::{caught, edit, reseal};
use archive_fixture::{host, plan, sealed, study, workload, write_session};
use palindrome_harness::archive::{Archive, ArchiveWriter};
use palindrome_harness::audit::audit;
use palindrome_harness::derive::{DERIVE, derive, derive_as};
use serde_json::Value;

const COINS: [bool; 1] = [true];

/// An archive as a program wrote it whose newest `derive` was version 1, of format 1.1.
fn sealed_by_version_1(root: &Path) -> PathBuf {
    let mut planned = plan(&COINS);
    planned.schema = "1.1".into();
    let toml = study(&COINS);
    let writer =
        ArchiveWriter::create(root, toml.as_bytes(), &planned, &host(), &workload()).unwrap();
    for session in &planned.sessions {
        write_session(&writer, session);
    }
    let facts = Archive::open(writer.path()).unwrap().facts().unwrap();
    writer.seal(&derive_as(&facts, 1).figures).unwrap()
}

#[test]
fn figures_state_the_version_that_derived_them() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &COINS);
    let text = std::fs::read_to_string(path.join("figures.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["derive"], DERIVE);
    assert_eq!(audit(&path).unwrap().figures_newer, 0);
}

#[test]
fn an_archive_of_an_older_derive_passes_and_what_it_lacks_is_counted() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed_by_version_1(root.path());
    let archive = Archive::open(&path).unwrap();
    let published = archive.figures().unwrap().unwrap();
    assert_eq!(published.derive_version(), 1);
    let text = std::fs::read_to_string(path.join("figures.json")).unwrap();
    assert!(!text.contains("\"derive\""), "version 1 stated none");
    let found = audit(&path).unwrap();
    assert_eq!(found.mismatches, [], "{found}");
    assert_eq!(found.figures, published.len());
    // The same facts, as this program derives them.
    let now = derive(&archive.facts().unwrap());
    assert_eq!(found.figures_newer, now.len() - published.len());
    let said = found.to_string();
    let line = format!(
        "{} figures that this newer version adds are not in the archive",
        found.figures_newer
    );
    assert_eq!(said.contains(&line), found.figures_newer > 0, "{said}");
    // Each figure that it claims is reproduced, and none that it had may go.
    let missing = format!("figures.json {}: is missing", published.all()[3].id());
    caught(&path, "a figure of version 1", &missing, |copy| {
        document(copy, |d| {
            drop(d["figures"].as_array_mut().unwrap().remove(3));
        });
    });
}

#[test]
fn an_archive_of_this_version_has_every_figure() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &COINS);
    let figures = Archive::open(&path).unwrap().figures().unwrap().unwrap();
    for at in [0, figures.len() / 2, figures.len() - 1] {
        let missing = format!("figures.json {}: is missing", figures.all()[at].id());
        caught(&path, "a figure deleted", &missing, |copy| {
            document(copy, |d| {
                drop(d["figures"].as_array_mut().unwrap().remove(at));
            });
        });
    }
}

#[test]
fn a_version_that_does_not_fit_the_archive_is_caught() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &COINS);
    let newer = format!(
        "figures.json derive: found {}, expected {DERIVE} at most: a newer palindrome can audit these figures",
        DERIVE + 1
    );
    caught(&path, "a newer version", &newer, |copy| {
        document(copy, |d| d["derive"] = (DERIVE + 1).into());
    });
    // To pass as an older archive, its format too would have to be older.
    let older = "figures.json derive: found 1, expected 2 or more by plan.json's format";
    caught(&path, "an older version", older, |copy| {
        document(copy, |d| d["derive"] = 1.into());
    });
}

/// Edits `figures.json` and makes every hash match again.
fn document(copy: &Path, change: impl FnOnce(&mut Value)) {
    edit(copy, "figures.json", |text| {
        let mut document: Value = serde_json::from_str(text).unwrap();
        change(&mut document);
        serde_json::to_string_pretty(&document).unwrap() + "\n"
    });
    reseal(copy);
}
