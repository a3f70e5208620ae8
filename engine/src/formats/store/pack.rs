//! Writing a store.

use std::fs::{self, File, TryLockError};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::prelude::{Prelude, read_prelude};
use super::{PAGE, StoreError};
use crate::formats::blocks::GgmlType;
use crate::formats::gguf::{GgufFile, TensorInfo};
use crate::formats::tiles::{self, TILE_ROWS};
use crate::formats::{packed_scales, planes};
use crate::hex::hex;

/// What packing did.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Bytes of the store.
    pub bytes: u64,
    /// Tensors put into tiles, of how many.
    pub tiled: (usize, usize),
    /// The tensor in planes.
    pub planes: Option<String>,
    /// Tensors with packed scales.
    pub packed_scales: usize,
}

/// How tiles are written, apart from the usual way. Outputs do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// A Q8_0 output matrix in planes, so that a part of it need not be read for most tokens.
    pub screening: bool,
    /// MXFP4 with packed scales, where a tensor's allow it.
    pub packed_scales: bool,
}

/// Packs the model at `source` (any part of a split one) into the store `out`, which appears
/// whole or not at all. A second packer of the same store waits for the first. Every weight is
/// looked through on the way, so an open store need not be. `progress` gets the source bytes done,
/// out of all.
pub fn pack(
    source: &Path,
    out: &Path,
    progress: impl FnMut(u64, u64),
) -> Result<Packed, StoreError> {
    pack_as(Packing::default(), source, out, progress)
}

/// As [`pack`], in another way.
pub fn pack_as(
    packing: Packing,
    source: &Path,
    out: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<Packed, StoreError> {
    let model = GgufFile::open(source)?;
    if model.paths().iter().any(|part| is_same_file(part, out)) {
        return Err(StoreError::OverSource(out.to_owned()));
    }
    let mut before = Prelude::of(&model)?;
    if packing.screening {
        before.planes = output(&model);
    }
    if packing.packed_scales {
        before.packed_scales = packable_scales(&model);
    }
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(StoreError::io(folder))?;
    let part = beside(out, "part");
    // The file under work is the lock, so what a killed packer left is taken over, not added to.
    let (work, waited) = locked(&part)?;
    let same = |made: Prelude| made.same_source(&before) && made.same_tiles(&before);
    if waited && read_prelude(out).is_ok_and(same) {
        fs::remove_file(&part).map_err(StoreError::io(&part))?;
    } else {
        let filled = fill(source, &before, (&work, &part), &mut progress);
        let done = filled.and_then(|()| fs::rename(&part, out).map_err(StoreError::io(out)));
        if let Err(error) = done {
            // Best effort: the error to report is the one that stopped the work. Its lock is
            // held, so the name still stands for the file of this packer.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
    }
    let tensors = model.tensors();
    let tiled = tensors.iter().filter(|t| t.has_tiles()).count();
    Ok(Packed {
        bytes: before.places().1,
        tiled: (tiled, tensors.len()),
        planes: before.planes,
        packed_scales: before.packed_scales.len(),
    })
}

/// Whether both names stand for one file, by whatever links.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).ok().map(|f| (f.dev(), f.ino()));
    id(a).is_some_and(|a| id(b) == Some(a))
}

/// The tensors all of whose scales can be packed.
fn packable_scales(model: &GgufFile) -> Vec<String> {
    let fit = |t: &&TensorInfo| {
        let tile = TILE_ROWS * (t.len / t.rows().max(1));
        t.ty == GgmlType::Mxfp4
            && t.has_tiles()
            && model.bytes(t).chunks_exact(tile).all(packed_scales::fits)
    };
    let tensors = model.tensors().iter().filter(fit);
    tensors.map(|t| t.name.clone()).collect()
}

/// The output matrix, where it can be split.
fn output(model: &GgufFile) -> Option<String> {
    let own = model.tensor("output.weight");
    let tensor = own.or_else(|| model.tensor("token_embd.weight"))?;
    let fits = tensor.ty == GgmlType::Q8_0 && tensor.has_tiles();
    fits.then(|| tensor.name.clone())
}

/// Fills `work` with the store of `source`, whose files must be those of `before` from first to
/// last.
fn fill(
    source: &Path,
    before: &Prelude,
    (work, path): (&File, &Path),
    progress: &mut impl FnMut(u64, u64),
) -> Result<(), StoreError> {
    work.set_len(0).map_err(StoreError::io(path))?;
    check_room(path, before.places().1)?;
    let file = GgufFile::open(source)?; // anew, after `before` was taken
    write(&file, before.clone(), (work, path), progress)?;
    if Prelude::of(&file)?.same_source(before) {
        Ok(())
    } else {
        Err(StoreError::Changed(source.to_owned()))
    }
}

/// `out` with an ending added to its name.
fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    out.with_file_name(name)
}

/// Opens or makes `path` and locks it; waits while another packer holds it. Whoever finishes
/// renames or removes the file, so after waiting the name may stand for another one. Returns
/// also whether it waited.
fn locked(path: &Path) -> Result<(File, bool), StoreError> {
    let io = StoreError::io(path);
    let mut waited = false;
    loop {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(&io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waited = true;
                file.lock().map_err(&io)?;
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let held = file.metadata().map_err(&io)?.ino();
        if fs::metadata(path).is_ok_and(|now| now.ino() == held) {
            return Ok((file, waited));
        }
    }
}

fn check_room(path: &Path, needed: u64) -> Result<(), StoreError> {
    let facts = rustix::fs::statvfs(path)
        .map_err(|error| StoreError::io(path)(std::io::Error::from(error)))?;
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    if free < needed {
        return Err(StoreError::NoRoom {
            path: path.to_owned(),
            needed,
            free,
        });
    }
    Ok(())
}

fn write(
    file: &GgufFile,
    mut prelude: Prelude,
    (work, path): (&File, &Path),
    progress: &mut impl FnMut(u64, u64),
) -> Result<(), StoreError> {
    let io = StoreError::io(path);
    let all: u64 = prelude.parts.iter().map(|p| p.bytes).sum();
    let mut out = BufWriter::with_capacity(1 << 20, work);
    out.write_all(&prelude.encode()).map_err(&io)?;
    let mut before = 0;
    for part in 0..prelude.parts.len() {
        let mut hash = Sha256::new();
        let source = file.part_bytes(part);
        let mut tensors: Vec<&TensorInfo> =
            file.tensors().iter().filter(|t| t.part == part).collect();
        tensors.sort_by_key(|t| t.offset);
        let mut at = 0;
        let (mut tile, mut other) = (Vec::new(), Vec::new());
        for tensor in tensors {
            file.check_tensor(tensor)?;
            let bytes = file.bytes(tensor);
            plain(&source[at..tensor.offset], &mut hash, &mut out).map_err(&io)?;
            if tensor.has_tiles() {
                let len = TILE_ROWS * (tensor.len / tensor.rows());
                tile.resize(len, 0);
                let mut written = 0;
                for (i, rows) in bytes.chunks_exact(len).enumerate() {
                    hash.update(rows);
                    tiles::pack(tensor.ty, rows, &mut tile);
                    let done = if prelude.planes.as_ref() == Some(&tensor.name) {
                        other.resize(len, 0);
                        planes::split(&tile, &mut other);
                        &other
                    } else if prelude.packed_scales.contains(&tensor.name) {
                        let columns = tensor.cols() / tensor.ty.block_len();
                        other.resize(packed_scales::tile_bytes(columns), 0);
                        packed_scales::pack(&tile, &mut other);
                        &other
                    } else {
                        &tile
                    };
                    out.write_all(done).map_err(&io)?;
                    written += done.len();
                    progress(before + (tensor.offset + i * len) as u64, all);
                }
                // Nothing is written where packed scales leave room: most file systems keep
                // nothing there either.
                out.seek_relative((tensor.len - written) as i64)
                    .map_err(&io)?;
            } else {
                plain(bytes, &mut hash, &mut out).map_err(&io)?;
            }
            at = tensor.offset + tensor.len;
            progress(before + at as u64, all);
        }
        plain(&source[at..], &mut hash, &mut out).map_err(&io)?;
        let end = source.len().next_multiple_of(PAGE as usize);
        out.write_all(&vec![0; end - source.len()]).map_err(&io)?;
        before += source.len() as u64;
        progress(before, all);
        prelude.parts[part].sha256 = hex(&hash.finalize());
    }
    out.seek(SeekFrom::Start(0)).map_err(&io)?;
    out.write_all(&prelude.encode()).map_err(&io)?;
    let done = out.into_inner().map_err(|error| io(error.into_error()))?;
    done.sync_all().map_err(&io)
}

fn plain(bytes: &[u8], hash: &mut Sha256, out: &mut impl Write) -> std::io::Result<()> {
    hash.update(bytes);
    out.write_all(bytes)
}
