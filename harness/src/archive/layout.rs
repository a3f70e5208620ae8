//! Names of folders and files inside an archive.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::ArchiveError;
use crate::study::PlannedSession;

/// The run's study file, byte for byte.
pub(super) const STUDY: &str = "study.toml";
/// The plan.
pub(super) const PLAN: &str = "plan.json";
/// The machine.
pub(super) const HOST: &str = "host.json";
/// Request bodies.
pub(super) const WORKLOAD: &str = "workload";
/// Session folders.
pub(super) const SESSIONS: &str = "sessions";
/// The run's log.
pub(super) const EVENTS: &str = "events.jsonl";
/// Published figures.
pub(super) const FIGURES: &str = "figures.json";
/// Hashes of everything above.
pub(super) const MANIFEST: &str = "manifest.json";
/// Hash of the manifest.
pub(super) const SEAL: &str = "SEAL";
/// Hashes of everything, in the format of sha256sum.
pub(super) const SUMS: &str = "SHA256SUMS";
/// A signature over the manifest, where there is one.
pub(super) const SIGNATURE: &str = "manifest.json.minisig";
/// A session's own summary: plan entry, end, hashes of its files.
pub(super) const SESSION: &str = "session.json";
/// How the session ended.
pub(super) const END: &str = "end.json";
/// Command, environment, hashes.
pub(super) const LAUNCH: &str = "launch.json";
/// One request a line.
pub(super) const REQUESTS: &str = "requests.jsonl";
/// Prompts that the server tokenised on request, one a line; absent where none was asked for.
pub(super) const PROMPTS: &str = "prompts.jsonl";
/// Calls that switched the server between arms, one a line; absent where none did.
pub(super) const SWITCHES: &str = "switches.jsonl";
/// Telemetry.
pub(super) const HOST_SAMPLES: &str = "host.jsonl";
/// What the server said of itself and its process showed; absent in older archives.
pub(super) const READBACK: &str = "readback.json";
/// What the server printed.
pub(super) const SERVER_LOG: &str = "server.log";
/// Raw responses.
pub(super) const STREAMS: &str = "streams";

/// Whether a file at the top of an archive vouches for the others, and so is not in the manifest.
pub(crate) fn is_outside_manifest(file: &str) -> bool {
    [MANIFEST, SUMS, SEAL, SIGNATURE].contains(&file)
}

/// `03-B`: position and arm.
pub fn session_folder_name(planned: &PlannedSession) -> String {
    format!("{:02}-{}", planned.index, slug(&planned.arm))
}

/// Keeps letters, digits, `.`, `_` and `-`; anything else becomes `-`. Never empty, never hidden.
pub(crate) fn slug(text: &str) -> String {
    let mut out: String = text
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    if out.is_empty() || out.starts_with('.') {
        out.insert(0, '_');
    }
    out
}

/// `20261130T070513Z`.
pub(super) fn utc_compact(time: SystemTime) -> String {
    let (y, mo, d, h, mi, s) = civil(time);
    format!("{y:04}{mo:02}{d:02}T{h:02}{mi:02}{s:02}Z")
}

/// `2026-11-30T07:05:13.042Z`.
pub fn utc_rfc3339(time: SystemTime) -> String {
    let (y, mo, d, h, mi, s) = civil(time);
    let millis = since_epoch(time).subsec_millis();
    format!("{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}.{millis:03}Z")
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Gregorian date of a time in UTC (H. Hinnant, "chrono-compatible low-level date algorithms").
fn civil(time: SystemTime) -> (u64, u64, u64, u64, u64, u64) {
    let seconds = since_epoch(time).as_secs();
    let z = seconds / 86_400 + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + u64::from(month <= 2);
    let rest = seconds % 86_400;
    (year, month, day, rest / 3600, rest / 60 % 60, rest % 60)
}

/// Every file below `root` as `/`-separated relative paths, sorted; links and hidden files count.
pub fn list_files(root: &Path) -> Result<Vec<String>, ArchiveError> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(relative) = folders.pop() {
        let folder = root.join(&relative);
        let entries = fs::read_dir(&folder).map_err(ArchiveError::io("list", &folder))?;
        for entry in entries {
            let entry = entry.map_err(ArchiveError::io("list", &folder))?;
            let kind = entry
                .file_type()
                .map_err(ArchiveError::io("inspect", &entry.path()))?;
            let path = relative.join(entry.file_name());
            if kind.is_dir() {
                folders.push(path);
            } else {
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_known_instants() {
        let at = |s: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(s);
        assert_eq!(utc_rfc3339(at(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc_rfc3339(at(951_827_696_789)), "2000-02-29T12:34:56.789Z");
        assert_eq!(utc_compact(at(1_796_022_313_000)), "20261130T070513Z");
    }

    #[test]
    fn slugs_are_safe_folder_names() {
        assert_eq!(slug("a/b c"), "a-b-c");
        assert_eq!(slug(".."), "_..");
        assert_eq!(slug(""), "_");
    }
}
