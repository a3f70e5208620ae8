//! Turning a store back into its source.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::StoreError;
use super::open::open;
use super::prelude::{Prelude, read_prelude};
use crate::formats::gguf::TensorInfo;
use crate::hex::hex;

/// Rebuilds every part of the source in memory, tile by tile, and compares its hash.
pub fn verify(store: &Path, progress: impl FnMut(u64, u64)) -> Result<Prelude, StoreError> {
    let prelude = read_prelude(store)?;
    each_part(store, &prelude, progress, |_| Ok((io::sink(), store)))?;
    Ok(prelude)
}

/// Writes the source's files, under their own names, into `folder`, and compares their hashes;
/// a part that does not agree is removed again. Existing files are not overwritten.
pub fn rebuild(
    store: &Path,
    folder: &Path,
    progress: impl FnMut(u64, u64),
) -> Result<Vec<PathBuf>, StoreError> {
    let prelude = read_prelude(store)?;
    fs::create_dir_all(folder).map_err(StoreError::io(folder))?;
    let paths: Vec<PathBuf> = prelude
        .parts
        .iter()
        .map(|part| match Path::new(&part.name).file_name() {
            Some(name) if name == part.name.as_str() => Ok(folder.join(name)),
            _ => Err(StoreError::Prelude {
                path: store.to_owned(),
                what: format!("{:?} is no file name", part.name),
            }),
        })
        .collect::<Result<_, _>>()?;
    let mut made = Vec::new();
    let done = each_part(store, &prelude, progress, |part| {
        let path = &paths[part];
        let file = File::create_new(path).map_err(StoreError::io(path))?;
        made.push(path.clone());
        Ok((BufWriter::with_capacity(1 << 20, file), path.as_path()))
    });
    if let Err(error) = done {
        for path in made {
            // Best effort: the error to report is the one that stopped the work.
            let _ = fs::remove_file(path);
        }
        return Err(error);
    }
    Ok(paths)
}

/// `writer` gives each part's output, and what it is called where writing fails.
fn each_part<'a, W: Write>(
    store: &Path,
    prelude: &Prelude,
    mut progress: impl FnMut(u64, u64),
    mut writer: impl FnMut(usize) -> Result<(W, &'a Path), StoreError>,
) -> Result<(), StoreError> {
    let file = open(store)?;
    let all: u64 = prelude.parts.iter().map(|p| p.bytes).sum();
    let mut before = 0;
    for (part, facts) in prelude.parts.iter().enumerate() {
        let (mut out, path) = writer(part)?;
        let io = StoreError::io(path);
        let mut hash = Sha256::new();
        let mut put = |bytes: &[u8]| {
            hash.update(bytes);
            out.write_all(bytes)
        };
        let bytes = file.part_bytes(part);
        let mut tensors: Vec<&TensorInfo> =
            file.tensors().iter().filter(|t| t.part == part).collect();
        tensors.sort_by_key(|t| t.offset);
        let mut at = 0;
        for tensor in tensors {
            put(&bytes[at..tensor.offset]).map_err(&io)?;
            let failed = file.each_rows(tensor, |_, rows| match put(rows) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            });
            failed.map_or(Ok(()), Err).map_err(&io)?;
            at = tensor.offset + tensor.len;
            progress(before + at as u64, all);
        }
        put(&bytes[at..]).map_err(&io)?;
        out.flush().map_err(&io)?;
        before += facts.bytes;
        progress(before, all);
        let found = hex(&hash.finalize());
        if found != facts.sha256 {
            return Err(StoreError::Content {
                path: store.to_owned(),
                part: part + 1,
                found,
                expected: facts.sha256.clone(),
            });
        }
    }
    Ok(())
}
