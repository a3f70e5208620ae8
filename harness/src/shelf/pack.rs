//! An archive as one file: a tar of its files in order of their names, compressed with zstd. The same
//! files give the same bytes, and come back as they were.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

use crate::archive::{Archive, ArchiveError, check_seal, list_files};

/// zstd level of a packed archive.
const LEVEL: i32 = 19;
/// Most bytes that a packed archive may unpack to; a larger one is refused, not written.
const LIMIT_BYTES: u64 = 64 << 30;
/// Most files.
const LIMIT_FILES: u64 = 1 << 20;

/// Why an archive cannot be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The archive cannot be read.
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
        source: io::Error,
    },
    /// Only what does not change any more is packed.
    #[error("{path} cannot be packed: {reason}")]
    NotSealed {
        /// The archive.
        path: PathBuf,
        /// What is wrong with its seal.
        reason: String,
    },
    /// Nothing is replaced.
    #[error(
        "{0} is there already; nothing is replaced: move it, or give another place with `--out`"
    )]
    Exists(PathBuf),
    /// The packed file holds something that no archive has.
    #[error("{file} is no packed archive: {entry}: {reason}")]
    Refused {
        /// The packed file.
        file: PathBuf,
        /// Name of the entry.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl PackError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Packs a sealed archive into a new file. Returns its size in bytes.
pub fn pack(archive: &Archive, file: &Path) -> Result<u64, PackError> {
    let folder = archive.path();
    if let Some(reason) = check_seal(folder)? {
        return Err(PackError::NotSealed {
            path: folder.into(),
            reason,
        });
    }
    if file.exists() {
        return Err(PackError::Exists(file.into()));
    }
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = file.with_file_name(name);
    let packed = write_packed(archive, &partial).and_then(|()| {
        // A link, and not a rename: it does not replace what came meanwhile.
        fs::hard_link(&partial, file).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => PackError::Exists(file.into()),
            _ => PackError::io("create", file)(error),
        })
    });
    // What stays of it is a file that says of itself that it is partial.
    let _ = fs::remove_file(&partial);
    packed?;
    let meta = fs::metadata(file).map_err(PackError::io("look at", file))?;
    Ok(meta.len())
}

fn write_packed(archive: &Archive, partial: &Path) -> Result<(), PackError> {
    let failed = || PackError::io("write", partial);
    let out = File::create(partial).map_err(PackError::io("create", partial))?;
    let mut zstd = zstd::Encoder::new(BufWriter::new(out), LEVEL).map_err(failed())?;
    zstd.include_checksum(true).map_err(failed())?;
    let mut tar = tar::Builder::new(zstd);
    let name = archive.name();
    for file in list_files(archive.path())? {
        let path = archive.path().join(&file);
        let meta = fs::symlink_metadata(&path).map_err(PackError::io("look at", &path))?;
        if !meta.is_file() {
            return Err(PackError::Refused {
                file: archive.path().into(),
                entry: file,
                reason: "it is no plain file".into(),
            });
        }
        let bytes = fs::read(&path).map_err(PackError::io("read", &path))?;
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes.len() as u64);
        // Nothing of the machine: the archive's own files say when and by whom.
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, format!("{name}/{file}"), bytes.as_slice())
            .map_err(failed())?;
    }
    let zstd = tar.into_inner().map_err(failed())?;
    let mut out = zstd.finish().map_err(failed())?;
    out.flush().map_err(failed())?;
    out.get_ref()
        .sync_all()
        .map_err(PackError::io("fsync", partial))
}

/// Unpacks into a new folder below `into`, which appears under its name only when complete. Refuses
/// links, names that lead elsewhere, names that come twice, and a folder that is there already.
pub fn unpack(file: &Path, into: &Path) -> Result<PathBuf, PackError> {
    fs::create_dir_all(into).map_err(PackError::io("create", into))?;
    let opened = File::open(file).map_err(PackError::io("open", file))?;
    let stem = file.file_name().unwrap_or_default().to_string_lossy();
    let partial = into.join(format!(".{stem}.unpacking"));
    fs::create_dir(&partial).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => PackError::Exists(partial.clone()),
        _ => PackError::io("create", &partial)(error),
    })?;
    let placed = read_packed(file, opened, &partial).and_then(|name| {
        let path = into.join(&name);
        if fs::symlink_metadata(&path).is_ok() {
            return Err(PackError::Exists(path));
        }
        fs::rename(partial.join(&name), &path)
            .map_err(PackError::io("rename into place", &path))?;
        Ok(path)
    });
    // The folder is hidden, and the first error matters.
    let _ = fs::remove_dir_all(&partial);
    placed
}

/// Writes every entry below `partial` and returns the name of the one folder that they lie in.
fn read_packed(file: &Path, opened: File, partial: &Path) -> Result<String, PackError> {
    let refused = |entry: &str, reason: &str| PackError::Refused {
        file: file.into(),
        entry: entry.into(),
        reason: reason.into(),
    };
    let unread = |error: io::Error| refused("reading it", &error.to_string());
    let zstd = zstd::Decoder::new(BufReader::new(opened)).map_err(unread)?;
    let mut tar = tar::Archive::new(zstd.take(LIMIT_BYTES));
    let (mut top, mut files, mut total) = (None::<String>, 0_u64, 0_u64);
    for entry in tar.entries().map_err(unread)? {
        let mut entry = entry.map_err(unread)?;
        let bytes = entry.path_bytes().into_owned();
        let name =
            String::from_utf8(bytes).map_err(|_| refused("an entry", "its name is not UTF-8"))?;
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(refused(&name, "it is no plain file"));
        }
        let parts = plain_parts(&name).ok_or_else(|| {
            refused(
                &name,
                "its name is not that of a file in an archive's folder",
            )
        })?;
        let known = top.get_or_insert_with(|| parts[0].to_owned());
        if known.as_str() != parts[0] {
            return Err(refused(
                &name,
                "it lies in another folder than the entries before",
            ));
        }
        files += 1;
        total = total.saturating_add(entry.size());
        if files > LIMIT_FILES || total > LIMIT_BYTES {
            return Err(refused(
                &name,
                "there are too many files, or too large ones",
            ));
        }
        let path = partial.join(parts.join("/"));
        let folder = path.parent().unwrap_or(partial);
        fs::create_dir_all(folder).map_err(PackError::io("create", folder))?;
        let mut out = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => refused(&name, "it is there twice"),
                _ => PackError::io("create", &path)(error),
            })?;
        let written = io::copy(&mut entry, &mut out).map_err(unread)?;
        if written != entry.size() {
            return Err(refused(&name, "it is cut off"));
        }
        out.sync_all().map_err(PackError::io("fsync", &path))?;
    }
    // To the end, so that zstd's checksum is looked at.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(unread)?;
    top.ok_or_else(|| refused("reading it", "there is nothing in it"))
}

/// The parts of a name that has at least a folder and a file, all of them plain and none hidden at
/// the top.
fn plain_parts(name: &str) -> Option<Vec<&str>> {
    let plain = name.split('/').all(|part| {
        !part.is_empty() && !part.contains(['\\', '\0']) && part != "." && part != ".."
    });
    let components = Path::new(name).components();
    let normal = components
        .clone()
        .all(|c| matches!(c, Component::Normal(_)));
    let parts: Vec<&str> = name.split('/').collect();
    let top = parts.first().is_some_and(|top| !top.starts_with('.'));
    (plain && normal && top && parts.len() > 1).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_inside_one_folder_are_plain() {
        for name in [
            "a/b",
            "20261130T1-x-1/sessions/00-A/streams/00.sse.zst",
            "a/.b",
        ] {
            assert!(plain_parts(name).is_some(), "{name}");
        }
        for name in [
            "a", "/a/b", "../a/b", "a/../b", "a/./b", "a//b", "a/", ".a/b", "", "a\\b/c", "./a/b",
        ] {
            assert!(plain_parts(name).is_none(), "{name}");
        }
    }
}
