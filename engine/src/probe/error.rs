//! Why a probe could not be made or read.

use std::path::PathBuf;

/// Why a probe could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// More threads than processors: they would take turns, and that is no limit of the machine.
    #[error("{threads} threads were asked for and this process may use {processors} processors")]
    TooManyThreads {
        /// As asked.
        threads: usize,
        /// As allowed by affinity and quota.
        processors: usize,
    },
    /// Buffers that dwarf the caches do not fit.
    #[error(
        "{needed_mib} MiB of free memory are needed to read past the caches and {free_mib} MiB are free"
    )]
    NoMemory {
        /// Two buffers' worth.
        needed_mib: u64,
        /// `MemAvailable`.
        free_mib: u64,
    },
    /// A file that cannot be read for timing.
    #[error("cannot time reads of {}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Too little room for the temporary file.
    #[error("cannot write a temporary file of {mib} MiB in {}: {source}", folder.display())]
    Temporary {
        /// Where.
        folder: PathBuf,
        /// Its size.
        mib: u64,
        /// The system's word.
        source: std::io::Error,
    },
    /// Reading failed half-way.
    #[error("reading {} failed: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// A file that is no probe's output.
    #[error("{}: {why}", path.display())]
    NoProbe {
        /// The file.
        path: PathBuf,
        /// What was expected.
        why: String,
    },
}
