//! A little-endian reader that knows where the bytes end.

use super::GgufError;

/// Reads forward through `bytes`; every read is checked against the end.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], GgufError> {
        match self.bytes[self.at..].get(..len) {
            Some(bytes) => {
                self.at += len;
                Ok(bytes)
            }
            None => Err(GgufError::Truncated {
                what: what.to_owned(),
                offset: self.at as u64,
                needed: len as u64,
                available: self.remaining() as u64,
            }),
        }
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], GgufError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, GgufError> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A length of 8 bytes, then that many bytes of UTF-8.
    pub(super) fn string(&mut self, what: &str) -> Result<String, GgufError> {
        let offset = self.at as u64;
        let len = self.u64(what)?;
        let available = self.remaining() as u64;
        if len > available {
            return Err(GgufError::StringPastEnd {
                what: what.to_owned(),
                offset,
                len,
                available,
            });
        }
        let bytes = self.take(len as usize, what)?;
        match std::str::from_utf8(bytes) {
            Ok(s) => Ok(s.to_owned()),
            Err(_) => Err(GgufError::NotUtf8 {
                what: what.to_owned(),
                offset,
            }),
        }
    }

    /// A count of entries that take at least `least` bytes each, as a usize that the rest of
    /// the file can hold.
    pub(super) fn count(&mut self, least: usize, what: &str) -> Result<usize, GgufError> {
        let count = self.u64(what)?;
        let most = (self.remaining() / least) as u64;
        if count > most {
            return Err(GgufError::AbsurdCount {
                what: what.to_owned(),
                count,
                most,
            });
        }
        Ok(count as usize)
    }
}
