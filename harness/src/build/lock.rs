//! One build in a folder at a time.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::BuildError;

/// Held while a folder is built in.
#[derive(Debug)]
pub(super) struct BuildLock {
    _file: File,
}

impl BuildLock {
    /// Waits for the lock, saying so once if it is taken; absent when cancelled meanwhile.
    pub(super) fn take(
        path: &Path,
        waiting: impl FnOnce(),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, BuildError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(BuildError::io("create", folder))?;
        }
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(BuildError::io("open", path))?;
        let mut waiting = Some(waiting);
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if let Some(say) = waiting.take() {
                say();
            }
            if cancelled() {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(Some(Self { _file: file }))
    }
}
