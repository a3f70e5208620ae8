//! The first pages of a store: where it came from.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{PAGE, StoreError};
use crate::formats::gguf::GgufFile;

const MAGIC: &[u8; 8] = b"PALSTORE";
const VERSION: u32 = 1;
/// Bytes before the JSON: magic, version, length of the JSON.
const FIXED: usize = 16;
/// A bound on what a damaged length can make us allocate.
const MOST_JSON: usize = 1 << 20;
/// Split files number their parts with five digits; none known has a hundred.
const MOST_PARTS: usize = 1000;

/// What a store says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prelude {
    /// The files it was packed from, in order.
    pub parts: Vec<SourcePart>,
    /// The tensor whose tiles are in planes (`formats::planes`): the output matrix of a store for
    /// screening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planes: Option<String>,
    /// The tensors whose tiles have packed scales (`formats::packed_scales`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packed_scales: Vec<String>,
}

/// One file of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcePart {
    /// Its name, without a folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its time of modification, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// Its time of change (of content, name or owner), in the same way.
    pub changed_ns: i128,
    /// sha256 of its bytes, lowercase hex.
    pub sha256: String,
}

impl Prelude {
    /// Of an open GGUF file, with zeros where the hashes belong.
    pub fn of(file: &GgufFile) -> Result<Self, StoreError> {
        let mut parts = Vec::new();
        for path in file.paths() {
            let facts = fs::metadata(path).map_err(StoreError::io(path))?;
            let name = path.file_name().unwrap_or_default();
            parts.push(SourcePart {
                name: name.to_string_lossy().into_owned(),
                bytes: facts.len(),
                modified_ns: nanoseconds(facts.mtime(), facts.mtime_nsec()),
                changed_ns: nanoseconds(facts.ctime(), facts.ctime_nsec()),
                sha256: "0".repeat(64),
            });
        }
        Ok(Self {
            parts,
            planes: None,
            packed_scales: Vec::new(),
        })
    }

    /// Whether both come from the same files, by length and times. The time of change is among
    /// them because tools that set a file's modification time cannot set that, and it is that of a
    /// renaming too; names are not, since a link's is another one.
    pub fn same_source(&self, other: &Self) -> bool {
        let facts = |p: &SourcePart| (p.bytes, p.modified_ns, p.changed_ns);
        self.parts
            .iter()
            .map(facts)
            .eq(other.parts.iter().map(facts))
    }

    /// Whether both have their tensors in the same kinds of tiles.
    pub(super) fn same_tiles(&self, other: &Self) -> bool {
        (&self.planes, &self.packed_scales) == (&other.planes, &other.packed_scales)
    }

    /// The prelude's bytes, padding and all.
    pub(super) fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("strings and integers become JSON");
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(json.len() as u32).to_le_bytes());
        out.extend_from_slice(&json);
        out.resize(out.len().next_multiple_of(PAGE as usize), 0);
        out
    }

    /// Where each part starts, and the length of the whole store.
    pub fn places(&self) -> (Vec<u64>, u64) {
        let mut at = self.encode().len() as u64;
        let mut starts = Vec::new();
        for part in &self.parts {
            starts.push(at);
            at = (at + part.bytes).next_multiple_of(PAGE);
        }
        (starts, at)
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

/// Whether the file starts as a store does; `false` also where it cannot be read.
pub fn is_store(path: &Path) -> bool {
    let mut magic = [0; 8];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut magic))
        .is_ok_and(|()| &magic == MAGIC)
}

/// Reads and checks a store's prelude and length.
pub fn read_prelude(path: &Path) -> Result<Prelude, StoreError> {
    let mut file = File::open(path).map_err(StoreError::io(path))?;
    let found = file.metadata().map_err(StoreError::io(path))?.len();
    let damaged = |what: String| StoreError::Prelude {
        path: path.to_owned(),
        what,
    };
    let mut fixed = Vec::new();
    file.by_ref()
        .take(FIXED as u64)
        .read_to_end(&mut fixed)
        .map_err(StoreError::io(path))?;
    if !fixed.starts_with(MAGIC) {
        fixed.truncate(MAGIC.len());
        return Err(StoreError::BadMagic {
            path: path.to_owned(),
            found: fixed,
        });
    }
    let word = |at: usize| {
        let bytes = fixed.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let (Some(version), Some(len)) = (word(8), word(12)) else {
        return Err(damaged(format!("it ends after {} bytes", fixed.len())));
    };
    if version != VERSION {
        return Err(StoreError::Version {
            path: path.to_owned(),
            found: version,
            expected: VERSION,
        });
    }
    if len as usize > MOST_JSON {
        return Err(damaged(format!("{len} bytes of JSON")));
    }
    let mut json = vec![0; len as usize];
    file.read_exact(&mut json)
        .map_err(|error| damaged(error.to_string()))?;
    let prelude: Prelude =
        serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
    if prelude.parts.is_empty() {
        return Err(damaged("it names no parts".to_owned()));
    }
    if let Some(part) = prelude.parts.iter().find(|p| p.bytes > found) {
        return Err(damaged(format!(
            "part {:?} of {} bytes in a store of {found}",
            part.name, part.bytes
        )));
    }
    if prelude.parts.len() > MOST_PARTS {
        return Err(damaged(format!(
            "{} parts, at most {MOST_PARTS} expected",
            prelude.parts.len()
        )));
    }
    let (_, expected) = prelude.places();
    if found != expected {
        return Err(StoreError::Length {
            path: path.to_owned(),
            found,
            expected,
        });
    }
    Ok(prelude)
}
