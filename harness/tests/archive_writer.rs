//! The archive's writer and reader: nothing half-written is ever read as whole.

mod archive_fixture;

use std::fs;

use archive_fixture::{
    create, host, launch, plan, response, sealed, study, workload, write_session,
};
use palindrome_harness::archive::{
    Archive, ArchiveError, ArchiveWriter, list_files, session_folder_name,
};
use palindrome_harness::replay::{RequestHeader, RequestRecord};
use palindrome_harness::server::ServerKind;

fn record(stream: &str) -> (RequestRecord, palindrome_harness::replay::RawResponse) {
    let raw = response(10, 100, 10, 3);
    let header = RequestHeader {
        index: 0,
        body: "one.json".into(),
        body_sha256: String::new(),
        scored: true,
        stream: stream.into(),
        ..RequestHeader::default()
    };
    (RequestRecord::assemble(header, &raw, ServerKind::Mock), raw)
}

#[test]
fn a_sealed_archive_reads_back_what_was_written() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let archive = Archive::open(&path).unwrap();
    assert!(archive.is_sealed());
    let facts = archive.facts().unwrap();
    assert_eq!(facts.plan, plan(&[true]));
    assert_eq!(facts.host, host());
    assert_eq!(facts.study_toml, study(&[true]).as_bytes());
    assert_eq!(facts.sessions.len(), 5);
    let session = &facts.sessions[2];
    assert_eq!(session.name(), "02-B");
    assert_eq!(
        session.launch,
        launch(&session.planned, session.launch.launched_ns)
    );
    let raw = archive.raw(&session.planned, "001").unwrap();
    assert_eq!(
        session.requests[1].recompute(&raw, session.launch.kind, false),
        session.requests[1]
    );
    let files = list_files(&path).unwrap();
    // Of the study: 3 and 2 bodies; 5 sessions of 6 + 2 x 2, and the prompts of both B sessions;
    // events, figures, manifest, its sums, seal.
    assert_eq!(files.len(), 3 + 2 + 5 * (6 + 4) + 2 + 5);
    assert!(matches!(
        ArchiveWriter::resume(&path),
        Err(ArchiveError::Sealed(_))
    ));
}

#[test]
fn a_killed_session_is_discarded_and_finished_ones_are_kept() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[true]);
    let writer = create(root.path(), &[true]);
    write_session(&writer, &plan.sessions[0]);
    write_session(&writer, &plan.sessions[1]);
    let under_way = writer.begin_session(&plan.sessions[2]).unwrap();
    let (r, raw) = record("000");
    under_way.request(&r, &raw).unwrap();
    // As after kill -9: no destructor runs, the hidden folder stays, the log's last line is torn.
    std::mem::forget(under_way);
    let path = writer.path().to_path_buf();
    let mut events = fs::read(path.join("events.jsonl")).unwrap();
    events.extend_from_slice(br#"{"schema":"1.0","se"#);
    fs::write(path.join("events.jsonl"), events).unwrap();
    drop(writer);

    let writer = ArchiveWriter::resume(&path).unwrap();
    assert_eq!(writer.finished_sessions().unwrap(), plan.sessions[..2]);
    assert!(
        list_files(&path)
            .unwrap()
            .iter()
            .all(|f| !f.contains("partial"))
    );
    for planned in &plan.sessions[2..] {
        write_session(&writer, planned);
    }
    let facts = Archive::open(&path).unwrap().facts().unwrap();
    let kinds: Vec<&str> = facts.events.iter().map(|e| e.kind.as_str()).collect();
    assert_eq!(kinds.iter().filter(|k| **k == "resumed").count(), 1);
    assert!(kinds.contains(&"session-discarded"));
    let figures = palindrome_harness::derive::derive(&facts);
    assert!(
        figures
            .verdict()
            .warnings
            .iter()
            .any(|w| w.contains("interrupted and resumed 1 time"))
    );
    let sealed = writer.seal(&figures).unwrap();
    assert_eq!(
        palindrome_harness::audit::audit(&sealed)
            .unwrap()
            .mismatches,
        []
    );
}

#[test]
fn a_session_changed_since_its_commit_is_not_resumed_from() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[true]);
    let writer = create(root.path(), &[true]);
    write_session(&writer, &plan.sessions[0]);
    write_session(&writer, &plan.sessions[1]);
    let path = writer.path().to_path_buf();
    let log = path
        .join("sessions")
        .join(session_folder_name(&plan.sessions[1]))
        .join("server.log");
    fs::write(log, "something else").unwrap();
    drop(writer);
    let writer = ArchiveWriter::resume(&path).unwrap();
    assert_eq!(writer.finished_sessions().unwrap(), plan.sessions[..1]);
    let events = Archive::open(&path).unwrap().events().unwrap();
    let discarded = events
        .iter()
        .find(|e| e.kind == "session-discarded")
        .unwrap();
    assert!(
        discarded.detail["reason"]
            .as_str()
            .unwrap()
            .starts_with("server.log: sha256 is")
    );
}

#[test]
fn a_dropped_session_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), &[true]);
    let planned = &plan(&[true]).sessions[0];
    let session = writer.begin_session(planned).unwrap();
    session.launch(&launch(planned, 5)).unwrap();
    drop(session);
    assert_eq!(
        fs::read_dir(writer.path().join("sessions"))
            .unwrap()
            .count(),
        0
    );
    // Nor does a commit of an unfinished session.
    let session = writer.begin_session(planned).unwrap();
    let error = session.commit().unwrap_err();
    assert_eq!(
        error.to_string(),
        "archive misuse: session committed without launch.json"
    );
    assert_eq!(
        fs::read_dir(writer.path().join("sessions"))
            .unwrap()
            .count(),
        0
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_loses_only_the_session_under_way() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(&[true]);
    let writer = create(root.path(), &[true]);
    write_session(&writer, &plan.sessions[0]);
    let session = writer.begin_session(&plan.sessions[1]).unwrap();
    // The kernel's always-full device stands in for the disk.
    let streams = session.log_path().parent().unwrap().join("streams");
    std::os::unix::fs::symlink("/dev/full", streams.join("000.sse.zst")).unwrap();
    let (r, raw) = record("000");
    let error = session.request(&r, &raw).unwrap_err();
    assert!(error.is_disk_full(), "{error}");
    drop(session);
    let path = writer.path().to_path_buf();
    drop(writer);
    let writer = ArchiveWriter::resume(&path).unwrap();
    assert_eq!(writer.finished_sessions().unwrap(), plan.sessions[..1]);
}

#[test]
fn only_a_complete_study_is_sealed() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), &[true]);
    write_session(&writer, &plan(&[true]).sessions[0]);
    let figures =
        palindrome_harness::derive::derive(&Archive::open(writer.path()).unwrap().facts().unwrap());
    let error = writer.seal(&figures).unwrap_err();
    assert_eq!(
        error.to_string(),
        "archive misuse: 1 of 5 planned sessions are recorded; resume the study before sealing it"
    );
}

#[test]
fn what_is_no_archive_or_too_new_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(
        Archive::open(root.path()),
        Err(ArchiveError::NotAnArchive { .. })
    ));
    let path = sealed(root.path(), &[true]);
    let text = fs::read_to_string(path.join("host.json")).unwrap();
    fs::write(
        path.join("host.json"),
        text.replace("\"schema\": \"1.0\"", "\"schema\": \"2.0\""),
    )
    .unwrap();
    let error = Archive::open(&path).unwrap().facts().unwrap_err();
    assert!(
        matches!(&error, ArchiveError::NewerSchema { file, .. } if file == "host.json"),
        "{error}"
    );
}

#[test]
fn a_body_name_cannot_leave_the_archive() {
    let root = tempfile::tempdir().unwrap();
    let mut bodies = workload();
    bodies[0].0 = "../evil.json".into();
    let made = ArchiveWriter::create(
        root.path(),
        study(&[true]).as_bytes(),
        &plan(&[true]),
        &host(),
        &bodies,
    );
    assert!(matches!(made, Err(ArchiveError::Misuse(_))));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}
