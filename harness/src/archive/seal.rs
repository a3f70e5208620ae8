//! The manifest (in-toto Statement v1) and the seal over it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ArchiveError;
use super::disk::{hash_file, sha256_hex};
use super::format::{PREDICATE_TYPE, SCHEMA, STATEMENT_TYPE};
use super::layout::{HOST, MANIFEST, PLAN, SEAL, list_files};
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
    /// Every file but the manifest and the seal, sorted by name.
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
        if name == MANIFEST || name == SEAL {
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
