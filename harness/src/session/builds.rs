//! Built arms of a run: built before there is an archive, recorded before the first session.

use serde_json::json;

use super::run::{RunOptions, broken};
use super::{Cancel, Progress, RunError};
use crate::archive::{Archive, ArchiveWriter};
use crate::build::{BuildRecord, Workshop, build_arms};
use crate::study::Study;

/// The kind of the event that records a build.
const BUILT: &str = "arm-built";

/// Builds what is to be built; the machine's lock is held, so no other study is measured meanwhile.
pub(super) fn build(
    study: &Study,
    options: &RunOptions,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<(Study, Vec<BuildRecord>), RunError> {
    let workshop = Workshop {
        builds: &options.builds,
        say: &|text| progress.step(text),
        cancelled: &|| cancel.is_set(),
    };
    Ok(build_arms(study, &workshop)?)
}

/// Records what was built. A study that goes on must go on with what it was begun with.
pub(super) fn record_builds(
    archive: &ArchiveWriter,
    records: &[BuildRecord],
) -> Result<(), RunError> {
    if records.is_empty() {
        return Ok(());
    }
    let events = Archive::open(archive.path())
        .and_then(|archive| archive.events())
        .map_err(broken(archive))?;
    let earlier: Vec<BuildRecord> = events
        .into_iter()
        .filter(|event| event.kind == BUILT)
        .filter_map(|event| serde_json::from_value(event.detail).ok())
        .collect();
    for record in records {
        let begun = earlier.iter().find(|earlier| earlier.arm == record.arm);
        if let Some(reason) = begun.and_then(|begun| begun.differs(record)) {
            return Err(RunError::OtherStudy {
                archive: archive.path().to_path_buf(),
                reason: format!("{reason}; start a new archive"),
            });
        }
        archive
            .event(BUILT, json!(record))
            .map_err(broken(archive))?;
    }
    Ok(())
}
