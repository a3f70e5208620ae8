//! One study at a time on a machine, for each user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// The held lock; released when dropped, or by the kernel when the process ends in any way.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl Drop for RunLock {
    /// Unlocks, and does not only close: a process that is being started holds a copy of every open
    /// file until it becomes its program, and with it the lock.
    fn drop(&mut self) {
        // The kernel releases the lock with the last copy all the same.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another study runs.
    #[error("another study is running{} (lock {path}); waited {waited_s:.0} s", .holder.as_deref().map(|h| format!(": process {h}")).unwrap_or_default())]
    Held {
        /// The lock's file.
        path: PathBuf,
        /// Process id of the holder, as it wrote it.
        holder: Option<String>,
        /// How long this run waited.
        waited_s: f64,
    },
    /// The lock's file cannot be opened.
    #[error("cannot open the lock {path}: {source}")]
    Io {
        /// The lock's file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Interrupted while waiting.
    #[error("interrupted while waiting for another study to end")]
    Cancelled,
}

/// Where the lock lies: the user's runtime folder, or else the temporary folder, by user id.
pub fn default_lock_path() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    match std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|p| p.is_dir())
    {
        Some(folder) => folder.join("palindrome.lock"),
        None => std::env::temp_dir().join(format!("palindrome-{user}.lock")),
    }
}

impl RunLock {
    /// Takes the lock, waiting up to `wait`; `waiting` hears once that it has to, and `cancelled`
    /// is asked while it does.
    pub fn take(
        path: &Path,
        wait: Duration,
        mut waiting: impl FnMut(&str),
        cancelled: impl Fn() -> bool,
    ) -> Result<Self, LockError> {
        let failed = |source| LockError::Io {
            path: path.to_path_buf(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let started = Instant::now();
        let mut told = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(e) => return Err(failed(e.into())),
            }
            let holder = holder(&mut file);
            if started.elapsed() >= wait {
                let waited_s = started.elapsed().as_secs_f64();
                return Err(LockError::Held {
                    path: path.to_path_buf(),
                    holder,
                    waited_s,
                });
            }
            if cancelled() {
                return Err(LockError::Cancelled);
            }
            if !told {
                waiting(&format!(
                    "another study is running (process {})",
                    holder.as_deref().unwrap_or("unknown")
                ));
                told = true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        write!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { file })
    }
}

fn holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned()).filter(|t| !t.is_empty())
}
