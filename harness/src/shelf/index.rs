//! `index.json` over a folder of archives: a chain of entries, each with the hash of the one before,
//! so that an archive which was removed or replaced shows. Entries are only added.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::archive::{
    Archive, ArchiveError, PublicKey, SCHEMA, check_seal, check_signature, hash_file,
    parse_document, replace_file, sha256_hex,
};

/// The file's name.
const FILE: &str = "index.json";
/// The `previous` of the first entry.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One entry: an archive that is kept, or one that no longer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexEntry {
    /// Position from 0.
    pub seq: u64,
    /// Name of the archive's folder.
    pub archive: String,
    /// sha256 of its manifest: what stands in its seal.
    pub manifest_sha256: String,
    /// Why it is no longer kept; absent for one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
    /// sha256 of the entry before, as compact JSON; 64 zeros for the first.
    pub previous: String,
}

impl IndexEntry {
    fn hash(&self) -> Result<String, IndexError> {
        let bytes = serde_json::to_vec(self).map_err(|e| IndexError::Malformed(e.to_string()))?;
        Ok(sha256_hex(&bytes))
    }
}

/// `index.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// `major.minor`.
    pub schema: String,
    /// In the order in which they were added.
    pub entries: Vec<IndexEntry>,
    /// sha256 of the last entry, as compact JSON: who keeps it elsewhere sees any change.
    pub head: String,
}

impl Index {
    fn new() -> Self {
        Self {
            schema: SCHEMA.into(),
            entries: Vec::new(),
            head: GENESIS.into(),
        }
    }

    /// The entry that stands for an archive: its last.
    fn entry(&self, archive: &str) -> Option<&IndexEntry> {
        self.entries.iter().rev().find(|e| e.archive == archive)
    }

    fn push(
        &mut self,
        archive: &str,
        manifest: String,
        withdrawn: Option<String>,
    ) -> Result<(), IndexError> {
        let entry = IndexEntry {
            seq: self.entries.len() as u64,
            archive: archive.into(),
            manifest_sha256: manifest,
            withdrawn,
            previous: self.head.clone(),
        };
        self.head = entry.hash()?;
        self.entries.push(entry);
        Ok(())
    }
}

/// Why there is no index, or none that may be added to.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// An archive, or the index's version.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The file system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It does not read as one.
    #[error("{FILE}: {0}")]
    Malformed(String),
    /// Nothing is added to what does not hold.
    #[error("nothing is added to an index that does not hold:\n{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Broken(Vec<Finding>),
    /// Only what does not change any more is indexed.
    #[error("{archive} cannot be indexed: {reason}")]
    NotSealed {
        /// The archive.
        archive: String,
        /// What is wrong with its seal.
        reason: String,
    },
    /// Neither kept nor withdrawn before.
    #[error("{0} is not in the index, or was withdrawn before")]
    NotKept(String),
}

/// What does not hold, with file and field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The index, or a file of an archive.
    pub file: String,
    /// Field or entry; empty for the file as a whole.
    pub field: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.field.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}: {}", self.file, self.field, self.what)
    }
}

fn finding(file: impl Into<String>, field: impl Into<String>, what: impl Into<String>) -> Finding {
    Finding {
        file: file.into(),
        field: field.into(),
        what: what.into(),
    }
}

/// The index, and what does not hold of how it is written.
fn read(folder: &Path) -> Result<Option<(Index, Vec<Finding>)>, IndexError> {
    let path = folder.join(FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            let action = "read";
            return Err(IndexError::Io {
                action,
                path,
                source,
            });
        }
    };
    let index: Index = parse_document(FILE, &bytes)?;
    let mut found = Vec::new();
    if document(&index)? != bytes {
        found.push(finding(
            FILE,
            "",
            "is not written as palindrome writes it, byte for byte",
        ));
    }
    found.extend(chain(&index)?);
    Ok(Some((index, found)))
}

fn document(index: &Index) -> Result<Vec<u8>, IndexError> {
    let bytes = serde_json::to_vec_pretty(index);
    let mut bytes = bytes.map_err(|e| IndexError::Malformed(e.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn write(folder: &Path, index: &Index) -> Result<PathBuf, IndexError> {
    let path = folder.join(FILE);
    let action = "write";
    replace_file(&path, &document(index)?).map_err(|source| IndexError::Io {
        action,
        path: path.clone(),
        source,
    })?;
    Ok(path)
}

/// Adds sealed archives of a folder to its index: those named, or all that are not in it yet.
/// Returns the index and the names that were added.
pub fn add(folder: &Path, named: &[String]) -> Result<(Index, Vec<String>), IndexError> {
    let mut index = held(folder)?;
    let names = if named.is_empty() {
        sealed(folder)?
    } else {
        named.to_vec()
    };
    let mut added = Vec::new();
    for name in names {
        if index.entry(&name).is_some_and(|e| e.withdrawn.is_none()) {
            continue;
        }
        let archive = Archive::open(&folder.join(&name))?;
        if let Some(reason) = check_seal(archive.path())? {
            let archive = name;
            return Err(IndexError::NotSealed { archive, reason });
        }
        index.push(&name, sha256_hex(&archive.read("manifest.json")?), None)?;
        added.push(name);
    }
    write(folder, &index)?;
    Ok((index, added))
}

/// Adds an entry that says that an archive is no longer kept, and why.
pub fn withdraw(folder: &Path, archive: &str, why: &str) -> Result<Index, IndexError> {
    let read = read(folder)?;
    let (mut index, mut found) = read.ok_or_else(|| IndexError::NotKept(archive.into()))?;
    // The archive may be gone already, which is what the entry is for; all else must hold.
    let others = archives(folder, &index);
    found.extend(
        others
            .into_iter()
            .filter(|f| !f.file.starts_with(&format!("{archive}/"))),
    );
    if !found.is_empty() {
        return Err(IndexError::Broken(found));
    }
    let kept = index.entry(archive).filter(|e| e.withdrawn.is_none());
    let kept = kept.ok_or_else(|| IndexError::NotKept(archive.into()))?;
    let manifest = kept.manifest_sha256.clone();
    index.push(archive, manifest, Some(why.into()))?;
    write(folder, &index)?;
    Ok(index)
}

/// The index of a folder, or a new one; it must hold.
fn held(folder: &Path) -> Result<Index, IndexError> {
    let Some((index, mut found)) = read(folder)? else {
        return Ok(Index::new());
    };
    found.extend(archives(folder, &index));
    if found.is_empty() {
        Ok(index)
    } else {
        Err(IndexError::Broken(found))
    }
}

/// Checks the index of a folder: its chain, its signature where there is one or a key is given, and
/// that each archive that it keeps is there with the manifest that was indexed. Returns it, what does
/// not hold, and the sealed archives that are not in it.
pub fn check(
    folder: &Path,
    key: Option<&PublicKey>,
) -> Result<(Index, Vec<Finding>, Vec<String>), IndexError> {
    let read = read(folder)?;
    let (index, mut found) = read.ok_or_else(|| IndexError::Malformed("there is none".into()))?;
    match check_signature(&folder.join(FILE), key) {
        Err((field, what)) => found.push(finding(format!("{FILE}.minisig"), field, what)),
        Ok(None) if key.is_some() => {
            found.push(finding(
                format!("{FILE}.minisig"),
                "",
                "is missing: the index is not signed",
            ));
        }
        Ok(_) => {}
    }
    found.extend(archives(folder, &index));
    let mut others = sealed(folder)?;
    others.retain(|name| index.entry(name).is_none_or(|e| e.withdrawn.is_some()));
    Ok((index, found, others))
}

fn chain(index: &Index) -> Result<Vec<Finding>, IndexError> {
    let mut found = Vec::new();
    let mut previous = GENESIS.to_owned();
    for (i, entry) in index.entries.iter().enumerate() {
        let at = |field: &str| format!("entry {i} {field}");
        if entry.seq != i as u64 {
            let what = format!("found {}, expected {i}", entry.seq);
            found.push(finding(FILE, at("seq"), what));
        }
        if entry.previous != previous {
            let what = "is not the hash of the entry before";
            found.push(finding(FILE, at("previous"), what));
        }
        previous = entry.hash()?;
    }
    if index.head != previous {
        found.push(finding(FILE, "head", "is not the hash of the last entry"));
    }
    Ok(found)
}

/// Each archive that is kept, against its entry.
fn archives(folder: &Path, index: &Index) -> Vec<Finding> {
    let last: BTreeMap<&str, &IndexEntry> = index
        .entries
        .iter()
        .map(|e| (e.archive.as_str(), e))
        .collect();
    let kept = last.into_values().filter(|e| e.withdrawn.is_none());
    let mut found = Vec::new();
    for entry in kept {
        let name = &entry.archive;
        let file = format!("{name}/manifest.json");
        match hash_file(&folder.join(&file)) {
            Ok(hash) if hash == entry.manifest_sha256 => {}
            Ok(hash) => {
                let what = format!("found {hash}, expected {} by {FILE}", entry.manifest_sha256);
                found.push(finding(file, "sha256", what));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                found.push(finding(
                    file,
                    "",
                    format!("is missing: {FILE} keeps this archive"),
                ));
            }
            Err(error) => found.push(finding(file, "", format!("cannot read it: {error}"))),
        }
    }
    found
}

/// Names of the sealed archives of a folder.
fn sealed(folder: &Path) -> Result<Vec<String>, IndexError> {
    let io = |source| IndexError::Io {
        action: "list",
        path: folder.into(),
        source,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && entry.path().join("SEAL").is_file() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
