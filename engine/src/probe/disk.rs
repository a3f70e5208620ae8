//! How fast a file is read with several requests in flight.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::passes::{Work, passes};
use super::{Figure, ProbeError, Quantity};

/// Requests in flight, each a thread with `pread`.
pub const DEPTHS: [usize; 4] = [1, 2, 4, 8];

const MIB: u64 = 1 << 20;
/// Bytes of a request.
const REQUEST: usize = 1 << 20;
/// Requests of all threads in a pass.
const PASS_REQUESTS: usize = 64;
/// Memory and offsets of direct reads are aligned to this.
const ALIGN: usize = 4096;
/// A file below this is read too soon to be timed.
const LEAST_FILE: u64 = 16 * MIB;

/// An open file to be read past the page cache, or else through it.
pub struct DiskFile {
    file: File,
    path: PathBuf,
    requests: u64,
    bytes: u64,
    temporary: bool,
    /// Why not directly.
    refused: Option<String>,
}

impl DiskFile {
    /// An existing file.
    pub fn open(path: &Path) -> Result<Self, ProbeError> {
        let fail = |why: String| ProbeError::File {
            path: path.to_owned(),
            why,
        };
        let meta = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?;
        if !meta.is_file() {
            return Err(fail("it is not a plain file".to_owned()));
        }
        if meta.len() < LEAST_FILE {
            return Err(fail(format!(
                "it has {} bytes; at least {} MiB are needed",
                meta.len(),
                LEAST_FILE / MIB
            )));
        }
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::blocks(&meta) * 512 < meta.len() / 2 {
            return Err(fail(
                "most of it is holes, which no disk is asked for".to_owned(),
            ));
        }
        Self::opened(path, meta.len(), false)
    }

    /// A temporary file of `mib` MiB of noise in `folder`. Its name is gone as soon as it is
    /// written, so that nothing stays behind however the program ends.
    pub fn temporary(folder: &Path, mib: u64) -> Result<Self, ProbeError> {
        let fail = |source: std::io::Error| ProbeError::Temporary {
            folder: folder.to_owned(),
            mib,
            source,
        };
        let path = folder.join(format!(".palindrome-probe-{}.tmp", std::process::id()));
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(fail)?;
        let written = fill(&mut file, mib);
        let opened = match written {
            Ok(()) => Self::opened(&path, mib * MIB, true),
            Err(error) => Err(fail(error)),
        };
        let removed = std::fs::remove_file(&path).map_err(fail);
        let opened = opened?;
        removed?;
        Ok(opened)
    }

    fn opened(path: &Path, bytes: u64, temporary: bool) -> Result<Self, ProbeError> {
        let (file, refused) = match open_direct(path) {
            Ok(file) => (file, None),
            Err(why) => {
                let file = File::open(path).map_err(|error| ProbeError::File {
                    path: path.to_owned(),
                    why: error.to_string(),
                })?;
                (file, Some(why))
            }
        };
        Ok(Self {
            file,
            path: path.to_owned(),
            requests: bytes / REQUEST as u64,
            bytes,
            temporary,
            refused,
        })
    }

    /// Where the figures come from, in a line.
    pub fn describe(&self) -> String {
        let mib = self.bytes / MIB;
        if self.temporary {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            format!("a temporary file of {mib} MiB in {}", folder.display())
        } else {
            format!("{} ({mib} MiB)", self.path.display())
        }
    }

    /// What a reader must know, when reads are not direct.
    pub fn warning(&self) -> Option<String> {
        self.refused.as_ref().map(|why| {
            format!(
                "O_DIRECT was refused for {} ({why}): read through the page cache after asking the kernel to drop the file from it, so the disk figures may be memory's",
                self.path.display()
            )
        })
    }

    /// Reads with `depth` requests in flight, in order and from the start again.
    pub fn read(&self, depth: usize, budget: Duration) -> Result<Figure, ProbeError> {
        self.drop_cached();
        let next = AtomicU64::new(0);
        let failure = Mutex::new(None);
        let share = (PASS_REQUESTS / depth).max(1);
        // Through the page cache, what was read once is not read from the disk again.
        let once = self.refused.is_some();
        let rates = passes(depth, budget, &|_| {
            let mut buffer = Buffer::new();
            let (next, failure) = (&next, &failure);
            let work: Work<'_> = Box::new(move || {
                for _ in 0..share {
                    let request = next.fetch_add(1, Ordering::Relaxed);
                    if once && request >= self.requests {
                        return None;
                    }
                    let offset = request % self.requests * REQUEST as u64;
                    if let Err(error) = read_exact_at(&self.file, buffer.aligned(), offset) {
                        failure
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .get_or_insert(error);
                        return None;
                    }
                }
                Some((share * REQUEST) as u64)
            });
            Ok(work)
        })?;
        let read_error = |source| ProbeError::Read {
            path: self.path.clone(),
            source,
        };
        if let Some(source) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(read_error(source));
        }
        if rates.is_empty() {
            let why = format!("it is too small for {depth} requests in flight through the cache");
            return Err(ProbeError::File {
                path: self.path.clone(),
                why,
            });
        }
        let how = if once {
            "pread of 1 MiB, through the page cache"
        } else {
            "pread of 1 MiB, O_DIRECT"
        };
        Ok(Figure::new(Quantity::DiskRead, depth, &rates, how))
    }

    /// Asks the kernel to forget the file's pages; a hint, so nothing depends on its success.
    fn drop_cached(&self) {
        #[cfg(target_os = "linux")]
        {
            let advice = rustix::fs::Advice::DontNeed;
            // Refused, the warning of `refused` covers it; granted, it did what it could.
            let _ = rustix::fs::fadvise(&self.file, 0, None, advice);
        }
    }
}

/// Noise, so that no file system compresses it, and on the disk when this returns.
fn fill(file: &mut File, mib: u64) -> std::io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut block = vec![0u8; REQUEST];
    for _ in 0..mib {
        for word in block.as_chunks_mut::<8>().0 {
            // xorshift64 (Marsaglia, 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_ne_bytes();
        }
        file.write_all(&block)?;
    }
    file.sync_all()
}

/// Opens for direct reads and tries one: some file systems refuse only then.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> Result<File, String> {
    use std::os::unix::fs::OpenOptionsExt;
    let flag = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flag)
        .open(path)
        .map_err(|error| error.to_string())?;
    read_exact_at(&file, Buffer::new().aligned(), 0).map_err(|error| error.to_string())?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> Result<File, String> {
    Err("not on this operating system".to_owned())
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(not(unix))]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    let read = std::os::windows::fs::FileExt::seek_read(file, buffer, offset)?;
    if read == buffer.len() {
        return Ok(());
    }
    Err(std::io::ErrorKind::UnexpectedEof.into())
}

/// Memory for one request, aligned.
struct Buffer(Vec<u8>);

impl Buffer {
    fn new() -> Self {
        Self(vec![0; REQUEST + ALIGN])
    }

    fn aligned(&mut self) -> &mut [u8] {
        let at = self.0.as_ptr().align_offset(ALIGN);
        &mut self.0[at..at + REQUEST]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_file_is_read_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskFile::temporary(folder.path(), 64).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(
            disk.describe()
                .starts_with("a temporary file of 64 MiB in ")
        );
        let figure = disk.read(2, Duration::ZERO).unwrap();
        assert!(figure.best.is_finite() && figure.median > 0.0);
        assert_eq!((figure.threads, figure.unit.as_str()), (2, "B/s"));
    }

    #[test]
    fn files_that_cannot_be_timed_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| {
            let error = DiskFile::open(path).err().unwrap().to_string();
            error.rsplit_once(": ").unwrap().1.to_owned()
        };
        assert_eq!(refused(folder.path()), "it is not a plain file");
        let small = folder.path().join("small");
        std::fs::write(&small, b"abc").unwrap();
        assert_eq!(
            refused(&small),
            "it has 3 bytes; at least 16 MiB are needed"
        );
        let holes = folder.path().join("holes");
        File::create(&holes).unwrap().set_len(64 * MIB).unwrap();
        assert_eq!(
            refused(&holes),
            "most of it is holes, which no disk is asked for"
        );
        assert!(DiskFile::open(&folder.path().join("none")).is_err());
    }
}
