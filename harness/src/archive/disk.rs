//! Writes that are whole or absent, and hashes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::ArchiveError;
use super::crash;

/// Lowercase hex sha256 of bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The first 12 characters of a hash or commit, for people.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Lowercase hex sha256 of a file's bytes.
pub fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 16];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..n]);
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{b:02x}");
            out
        })
}

/// Writes a file under a temporary name, fsyncs it, renames it into place and fsyncs the folder.
pub(super) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("file");
    let temporary = path.with_file_name(format!(".{name}.partial"));
    let written = write_synced(&temporary, bytes);
    if let Err(error) = written {
        // The error that matters is the write's; the leftover is hidden and discarded by `resume`.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    fs::rename(&temporary, path).map_err(ArchiveError::io("rename into place", path))?;
    crash::step("rename of a file");
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// Writes a small file, with its folder, so that a reader sees the old one or the new one, never a
/// part. Not fsynced: for what can be made again.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes)?;
    fs::rename(&partial, path)
}

/// Creates a file with these bytes and fsyncs it (no rename: for use inside a temporary folder).
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let mut file = File::create(path).map_err(ArchiveError::io("create", path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    crash::write_all(&mut file, &name, bytes).map_err(ArchiveError::io("write", path))?;
    file.sync_all().map_err(ArchiveError::io("fsync", path))
}

/// Makes a rename or creation in a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), ArchiveError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(ArchiveError::io("fsync folder", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_abc_is_the_standards_example() {
        // FIPS 180-4, appendix: SHA-256("abc").
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn an_atomic_write_replaces_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(hash_file(&path).unwrap(), sha256_hex(b"two"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
