//! Exit codes, documented in `docs/studies.md`.

/// Why the program ends as it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Pass, or done.
    Done = 0,
    /// Bad flag, bad study file.
    Usage = 2,
    /// Nothing was measured.
    NothingMeasured = 4,
    /// A server could not be built, launched or made ready.
    Server = 96,
    /// Regression.
    Regression = 100,
    /// Inconclusive.
    Inconclusive = 101,
    /// A host guard refused.
    HostGuard = 102,
    /// Token identity mismatch.
    Identity = 103,
    /// Audit or hash failure.
    Audit = 104,
    /// Interrupted, resumable.
    Incomplete = 106,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
