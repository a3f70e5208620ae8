//! How keys and values are kept, as a user chooses it.

use clap::ValueEnum;

/// The format of the K/V cache. Numbers are rounded once, when they are written, to the nearest,
/// halves to even; the same choice gives the same bits everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KvType {
    /// Half the memory, and less to read at depth; numbers beyond 65504 are refused
    #[default]
    F16,
    /// As computed
    F32,
}

impl KvType {
    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }

    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }
}
