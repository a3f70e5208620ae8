//! Streams a planned file to disk under a temporary name, then renames it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

use super::SynthError;
use super::fill::{Filler, Target};
use super::plan::Plan;

/// Bytes made before they are written; also the unit of work of a thread.
const CHUNK_BYTES: usize = 4 << 20;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Bytes of the file.
    pub bytes: u64,
    /// Tensors in it.
    pub tensors: usize,
}

/// Writes the file at `path`. The bytes depend on the plan and the seed, not on `threads`.
/// Refuses to replace a file unless `force`, and to start when the disk lacks the space.
pub fn write(
    path: &Path,
    plan: &Plan,
    seed: u64,
    threads: usize,
    force: bool,
) -> Result<Report, SynthError> {
    if !force && path.exists() {
        return Err(SynthError::Exists {
            path: path.to_owned(),
        });
    }
    let bytes = plan.writer.file_bytes();
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let free = free_bytes(folder)?;
    if bytes > free {
        return Err(SynthError::NoSpace {
            path: path.to_owned(),
            needed: bytes,
            free,
        });
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = Partial {
        path: path.with_file_name(name),
    };
    stream(&partial.path, plan, seed, threads.max(1), bytes)?;
    std::fs::rename(&partial.path, path).map_err(|e| io(path, e))?;
    std::mem::forget(partial); // it has its final name now
    Ok(Report {
        bytes,
        tensors: plan.recipes.len(),
    })
}

fn io(path: &Path, source: std::io::Error) -> SynthError {
    SynthError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Free bytes for this user on the disk of `folder`.
fn free_bytes(folder: &Path) -> Result<u64, SynthError> {
    let stat = rustix::fs::statvfs(folder).map_err(|e| io(folder, e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// An unfinished file: removed when dropped.
struct Partial {
    path: PathBuf,
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Nothing better can be done with an error here; the name says what the file is.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn stream(
    path: &Path,
    plan: &Plan,
    seed: u64,
    threads: usize,
    bytes: u64,
) -> Result<(), SynthError> {
    let style = "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}";
    let progress = ProgressBar::new(bytes)
        .with_style(ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar()))
        .with_message("writing");
    let file = File::create(path).map_err(|e| io(path, e))?;
    let mut out = BufWriter::with_capacity(1 << 20, progress.wrap_write(file));
    out.write_all(&plan.writer.header())
        .map_err(|e| io(path, e))?;
    for (spec, recipe) in plan.writer.tensors().iter().zip(&plan.recipes) {
        let target = Target {
            seed,
            name: &spec.name,
            ty: spec.ty,
            cols: spec.dims[0] as usize,
            rows: spec.dims[1..].iter().product(),
            recipe: *recipe,
        };
        let rows = target.rows;
        let row_bytes = (spec.byte_len() / rows) as usize;
        let filler = Filler::new(target);
        let chunk_rows = (CHUNK_BYTES / row_bytes).max(1) as u64;
        let mut row = 0;
        while row < rows {
            let chunks = make_chunks(&filler, row..rows, chunk_rows, row_bytes, threads);
            for chunk in chunks {
                out.write_all(&chunk).map_err(|e| io(path, e))?;
            }
            row += chunk_rows * threads as u64;
        }
        let padding = plan.writer.padding(spec.byte_len());
        out.write_all(&vec![0; padding]).map_err(|e| io(path, e))?;
    }
    out.flush().map_err(|e| io(path, e))?;
    progress.finish_and_clear();
    Ok(())
}

/// The next chunks of rows, one a thread, in order.
fn make_chunks(
    filler: &Filler<'_>,
    rows: std::ops::Range<u64>,
    chunk_rows: u64,
    row_bytes: usize,
    threads: usize,
) -> Vec<Vec<u8>> {
    let make = |first: u64| {
        let last = (first + chunk_rows).min(rows.end);
        let mut out = Vec::with_capacity((last - first) as usize * row_bytes);
        for row in first..last {
            filler.row(row, &mut out);
        }
        out
    };
    let starts = rows.clone().step_by(chunk_rows as usize).take(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = starts
            .map(|first| scope.spawn(move || make(first)))
            .collect();
        workers
            .into_iter()
            .map(|w| {
                w.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}
