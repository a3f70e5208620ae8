//! Hashes of large files, remembered while inode, size and modification time stay as they were.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{FileFact, LaunchError};
use crate::archive::{hash_file, replace_file};

/// A cache of file hashes in one JSON file.
#[derive(Debug)]
pub struct HashCache {
    file: Option<PathBuf>,
    known: BTreeMap<String, String>,
}

impl HashCache {
    /// Opens the cache; with `rehash` everything is hashed anew. Without a file it lives in memory.
    /// A cache that cannot be read is an empty one.
    pub fn open(file: Option<PathBuf>, rehash: bool) -> Self {
        let known = file
            .as_ref()
            .filter(|_| !rehash)
            .and_then(|f| fs::read(f).ok())
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        Self { file, known }
    }

    /// The fact of a file.
    pub fn fact(&mut self, path: &Path) -> Result<FileFact, LaunchError> {
        let failed = |source| LaunchError::Io {
            path: path.to_path_buf(),
            source,
        };
        let meta = fs::metadata(path).map_err(failed)?;
        let key = format!(
            "{}:{}:{}:{}.{:09}",
            meta.dev(),
            meta.ino(),
            meta.size(),
            meta.mtime(),
            meta.mtime_nsec()
        );
        let sha256 = if let Some(known) = self.known.get(&key) {
            known.clone()
        } else {
            let hash = hash_file(path).map_err(failed)?;
            self.known.insert(key, hash.clone());
            self.save();
            hash
        };
        Ok(FileFact {
            path: path.display().to_string(),
            bytes: meta.size(),
            sha256,
        })
    }

    /// Best effort: a cache that cannot be written costs time, not truth.
    fn save(&self) {
        let Some(file) = &self.file else { return };
        let bytes = serde_json::to_vec(&self.known).map_err(io::Error::other);
        if let Err(e) = bytes.and_then(|bytes| replace_file(file, &bytes)) {
            eprintln!(
                "warning: cannot keep file hashes in {}: {e}",
                file.display()
            );
        }
    }
}

/// A model's files: the file itself, or all parts of a split one (`-00001-of-00003.gguf`).
pub(super) fn model_files(model: &Path) -> Vec<PathBuf> {
    split_parts(model).unwrap_or_else(|| vec![model.to_path_buf()])
}

fn split_parts(model: &Path) -> Option<Vec<PathBuf>> {
    let name = model.file_name()?.to_str()?;
    let (start, rest) = name.rsplit_once("-of-")?;
    let (count, extension) = rest.split_once('.')?;
    let (stem, part) = start.rsplit_once('-')?;
    if part.len() != 5 || count.len() != 5 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u32 = count.parse().ok()?;
    let file = |i| model.with_file_name(format!("{stem}-{i:05}-of-{count:05}.{extension}"));
    Some((1..=count).map(file).filter(|p| p.is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_hashed_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache/hashes.json");
        let model = folder.path().join("m.gguf");
        fs::write(&model, "one").unwrap();
        let first = HashCache::open(Some(cache.clone()), false)
            .fact(&model)
            .unwrap();
        let again = HashCache::open(Some(cache.clone()), false);
        assert!(again.known.values().any(|h| *h == first.sha256));
        fs::write(&model, "longer").unwrap();
        let second = HashCache::open(Some(cache.clone()), false)
            .fact(&model)
            .unwrap();
        assert_ne!(first.sha256, second.sha256);
        assert!(HashCache::open(Some(cache), true).known.is_empty());
    }

    #[test]
    fn split_models_are_all_their_parts() {
        let folder = tempfile::tempdir().unwrap();
        for i in 1..=3 {
            fs::write(folder.path().join(format!("m-0000{i}-of-00003.gguf")), "x").unwrap();
        }
        assert_eq!(
            model_files(&folder.path().join("m-00001-of-00003.gguf")).len(),
            3
        );
        assert_eq!(model_files(Path::new("m.gguf")), [PathBuf::from("m.gguf")]);
    }
}
