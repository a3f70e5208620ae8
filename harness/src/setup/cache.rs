//! Where things that can be made again are kept.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::SetupError;
use crate::archive::replace_file;

/// The root of the checkout this program belongs to: the nearest folder above `start` that holds
/// both crates, else the folder it was compiled in, if that is still there.
pub fn workspace_root(start: &Path) -> Option<PathBuf> {
    let is_root = |folder: &Path| {
        folder.join("Cargo.toml").is_file()
            && folder.join("harness/Cargo.toml").is_file()
            && folder.join("engine/Cargo.toml").is_file()
    };
    let compiled_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    start
        .ancestors()
        .chain(compiled_in)
        .find(|folder| is_root(folder))
        .map(Path::to_path_buf)
}

/// The cache folder: `PALINDROME_CACHE`; else `.cache/palindrome` in the checkout; else the
/// user's cache folder. Removing it loses nothing but time.
pub fn cache_folder() -> PathBuf {
    if let Some(folder) = env::var_os("PALINDROME_CACHE").filter(|v| !v.is_empty()) {
        return std::path::absolute(&folder).unwrap_or_else(|_| folder.into());
    }
    let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    if let Some(root) = workspace_root(&here) {
        return root.join(".cache/palindrome");
    }
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|v| !v.is_empty())
        .map_or_else(
            || {
                env::var_os("HOME")
                    .map_or_else(env::temp_dir, PathBuf::from)
                    .join(".cache")
            },
            PathBuf::from,
        );
    base.join("palindrome")
}

/// Held while something is installed, so that two set-ups at once follow one another.
pub(super) struct InstallLock {
    _file: File,
}

impl InstallLock {
    /// Waits for the lock of `folder`, and says so through `say` if it is taken.
    pub(super) fn take(folder: &Path, say: &dyn Fn(&str)) -> Result<Self, SetupError> {
        fs::create_dir_all(folder).map_err(SetupError::io("create", folder))?;
        let path = folder.join("setup.lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(SetupError::io("open", &path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            say("another set-up is under way; waiting for it");
            flock(&file, FlockOperation::LockExclusive)
                .map_err(|e| SetupError::io("lock", &path)(e.into()))?;
        }
        Ok(Self { _file: file })
    }
}

/// Writes a small file so that a reader sees the old one or the new one, never a part.
pub(super) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), SetupError> {
    replace_file(path, bytes).map_err(SetupError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_checkout_from_a_folder_deep_inside_it() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = workspace_root(&manifest.join("src/setup")).expect("inside the checkout");
        assert_eq!(
            root,
            manifest.parent().expect("the workspace is above the crate")
        );
    }

    #[test]
    fn an_atomic_write_replaces_and_leaves_no_partial_file() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("record.json");
        write_atomic(&path, b"one").expect("first write");
        write_atomic(&path, b"two").expect("second write");
        assert_eq!(fs::read(&path).expect("readable"), b"two");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }
}
