//! What people read, over a deterministic study.

mod archive_fixture;

use std::fs;
use std::path::Path;

use archive_fixture::sealed;
use palindrome_harness::archive::Archive;
use palindrome_harness::report::{ReportError, verdict_table, write};

/// Hashes, the archive's name and times differ from run to run; nothing else may.
fn redacted(text: &str, archive: &str) -> String {
    let text = text
        .replace(archive, "ARCHIVE")
        .replace(&archive.replace('_', "\\_"), "ARCHIVE");
    let mut out = String::new();
    let mut run = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() || ('a'..='f').contains(&c) {
            run.push(c);
            continue;
        }
        out.push_str(if run.len() == 64 { "SHA256" } else { &run });
        run.clear();
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out
}

fn report(coins: &[bool], root: &Path) -> (Archive, palindrome_harness::report::Written) {
    let archive = Archive::open(&sealed(root, coins)).unwrap();
    let written = write(&archive, &root.join("reports")).unwrap();
    (archive, written)
}

#[test]
fn the_terminals_table_of_one_quartet() {
    let root = tempfile::tempdir().unwrap();
    let archive = Archive::open(&sealed(root.path(), &[true])).unwrap();
    insta::assert_snapshot!(verdict_table(&archive.figures().unwrap().unwrap()));
}

#[test]
fn the_terminals_table_of_two_quartets() {
    let root = tempfile::tempdir().unwrap();
    let archive = Archive::open(&sealed(root.path(), &[true, false])).unwrap();
    insta::assert_snapshot!(verdict_table(&archive.figures().unwrap().unwrap()));
}

#[test]
fn the_markdown_page() {
    let root = tempfile::tempdir().unwrap();
    let (archive, written) = report(&[true], root.path());
    let text = fs::read_to_string(written.markdown).unwrap();
    insta::assert_snapshot!(redacted(&text, &archive.name()));
}

#[test]
fn the_chart_of_two_quartets() {
    let root = tempfile::tempdir().unwrap();
    let (_, written) = report(&[true, false], root.path());
    insta::assert_snapshot!(fs::read_to_string(written.chart).unwrap());
}

#[test]
fn the_html_page_is_self_contained_and_warns_first() {
    let root = tempfile::tempdir().unwrap();
    let (archive, written) = report(&[true], root.path());
    let html = fs::read_to_string(&written.html).unwrap();
    for outside in ["http://", "src=", "@import", "url(", "<script"] {
        let found = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(outside), "{outside} in the page");
    }
    assert_eq!(html.matches("<svg").count(), 1);
    let at = |text: &str| {
        html.find(text)
            .unwrap_or_else(|| panic!("{text} is not in the page"))
    };
    assert!(at("The baseline was not built for this host") < at("class=\"verdict\""));
    assert!(at("uncommitted changes over commit") < at("class=\"verdict\""));
    assert!(at("There is no interval: 2 pairs of sessions determine") > at("class=\"verdict\""));
    assert!(html.contains("prefers-color-scheme:dark"));
    assert_eq!(
        written
            .html
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_string_lossy(),
        archive.name()
    );
}

#[test]
fn a_broken_seal_is_said_in_the_first_lines_and_reports_stay_outside() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let archive = Archive::open(&path).unwrap();
    assert!(matches!(
        write(&archive, &path),
        Err(ReportError::InsideArchive(_))
    ));
    fs::remove_file(path.join("SEAL")).unwrap();
    let written = write(&archive, &root.path().join("reports")).unwrap();
    let text = fs::read_to_string(written.markdown).unwrap();
    let line = text.lines().nth(2).unwrap();
    assert_eq!(
        line,
        "> **Warning.** This evidence is not sealed as it stands: the archive is not sealed: there is no SEAL."
    );
}

#[test]
fn a_page_of_a_changed_archive_says_so_first() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let whole = write(&Archive::open(&path).unwrap(), &root.path().join("reports")).unwrap();
    let whole = fs::read_to_string(whole.markdown).unwrap();
    assert!(!whole.contains("not sealed"), "{whole}");
    let figures = fs::read_to_string(path.join("figures.json")).unwrap();
    fs::write(path.join("figures.json"), format!("{figures}\n")).unwrap();
    let changed = write(&Archive::open(&path).unwrap(), &root.path().join("changed")).unwrap();
    let changed = fs::read_to_string(changed.markdown).unwrap();
    let warning = "figures.json is not the file that was sealed";
    assert!(changed.contains(warning), "{changed}");
}
