//! The manifest (in-toto Statement v1) and the seal over it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ArchiveError;
use super::disk::{hash_file, sha256_hex};
use super::format::{PREDICATE_TYPE, SCHEMA, STATEMENT_TYPE, check_schema};
use super::json;
use super::layout::{HOST, MANIFEST, PLAN, SEAL, SUMS, is_outside_manifest, list_files};
use super::reader::read_value;
use crate::derive::Verdict;

/// A file and its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Path inside the archive.
    pub name: String,
    /// `{"sha256": hex}`.
    pub digest: BTreeMap<String, String>,
}

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub statement: String,
    /// Every file but the manifest and what is made of it, sorted by name.
    pub subject: Vec<Subject>,
    /// [`PREDICATE_TYPE`].
    pub predicate_type: String,
    /// Study, plan, host, verdict.
    pub predicate: Predicate,
}

/// What the manifest states about its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicate {
    /// `major.minor` of the archive.
    pub schema: String,
    /// `plan.json`, whole: study, seed, coins, order.
    pub plan: Value,
    /// `host.json`, whole.
    pub host: Value,
    /// The verdict of `figures.json`, whole.
    pub verdict: Value,
}

/// The manifest of an archive folder as it lies on disk, ready to write. A pure function of the
/// files and the verdict, so that an audit can compute it again.
pub fn manifest_bytes(archive: &Path, verdict: &Verdict) -> Result<Vec<u8>, ArchiveError> {
    let mut subject = Vec::new();
    for name in list_files(archive)? {
        if is_outside_manifest(&name) {
            continue;
        }
        let path = archive.join(&name);
        let sha256 = hash_file(&path).map_err(ArchiveError::io("hash", &path))?;
        subject.push(Subject {
            name,
            digest: BTreeMap::from([("sha256".to_string(), sha256)]),
        });
    }
    let verdict = serde_json::to_value(verdict)
        .map_err(|e| ArchiveError::malformed(MANIFEST, None, e.to_string()))?;
    let plan = read_value(archive, PLAN)?;
    let schema = plan.get("schema").and_then(Value::as_str);
    let manifest = Manifest {
        statement: STATEMENT_TYPE.into(),
        subject,
        predicate_type: PREDICATE_TYPE.into(),
        predicate: Predicate {
            schema: schema.unwrap_or(SCHEMA).into(),
            plan,
            host: read_value(archive, HOST)?,
            verdict,
        },
    };
    let mut bytes = serde_json::to_vec_pretty(&manifest)
        .map_err(|e| ArchiveError::malformed(MANIFEST, None, e.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// `SHA256SUMS`: a line for every file of a manifest and one for the manifest itself, in the format
/// of sha256sum.
pub fn sums(manifest: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let read: Manifest = parse_manifest(manifest)?;
    let line = |hash: &str, name: &str| format!("{hash}  {name}\n");
    let subjects = read.subject.iter().map(|subject| {
        let hash = subject.digest.get("sha256").map_or("", String::as_str);
        line(hash, &subject.name)
    });
    let last = line(&sha256_hex(manifest), MANIFEST);
    Ok(subjects.chain([last]).collect::<String>().into_bytes())
}

/// Reads a manifest; its version stands in the predicate.
pub(super) fn parse_manifest(bytes: &[u8]) -> Result<Manifest, ArchiveError> {
    let malformed = |e: serde_json::Error| ArchiveError::malformed(MANIFEST, None, e.to_string());
    let value = json::parse(bytes).map_err(malformed)?;
    check_schema(MANIFEST, value.get("predicate").unwrap_or(&Value::Null))?;
    serde_json::from_value(value).map_err(malformed)
}

/// Checks `SHA256SUMS` against `manifest.json`. `Ok(None)` when it holds, or is absent where that is
/// allowed; else what does not hold: the line, and why.
pub fn check_sums(
    archive: &Path,
    required: bool,
) -> Result<Option<(String, String)>, ArchiveError> {
    let path = archive.join(SUMS);
    let found = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(required.then(|| (String::new(), "is missing".into())));
        }
        Err(e) => return Err(ArchiveError::io("read", &path)(e)),
    };
    let manifest = archive.join(MANIFEST);
    let manifest = fs::read(&manifest).map_err(ArchiveError::io("read", &manifest))?;
    let expected = sums(&manifest)?;
    if found == expected {
        return Ok(None);
    }
    let (found, expected) = (
        found.split(|b| *b == b'\n'),
        expected.split(|b| *b == b'\n'),
    );
    let same = found.zip(expected).take_while(|(a, b)| a == b).count();
    let what = format!("is not what {MANIFEST} gives");
    Ok(Some((format!("line {}", same + 1), what)))
}

/// Checks `SEAL` against `manifest.json`. `Ok(None)` when it holds, else what does not.
pub fn check_seal(archive: &Path) -> Result<Option<String>, ArchiveError> {
    let path = archive.join(SEAL);
    let seal = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some("the archive is not sealed: there is no SEAL".into()));
        }
        Err(e) => return Err(ArchiveError::io("read", &path)(e)),
    };
    let manifest = archive.join(MANIFEST);
    let bytes = fs::read(&manifest).map_err(ArchiveError::io("read", &manifest))?;
    let expected = format!("{}  {MANIFEST}\n", sha256_hex(&bytes));
    if seal == expected.as_bytes() {
        return Ok(None);
    }
    Ok(Some(format!(
        "SEAL does not hold the sha256 of {MANIFEST} ({})",
        sha256_hex(&bytes)
    )))
}
