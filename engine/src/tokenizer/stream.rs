//! Text from a stream of tokens without ever splitting a character.

/// Collects token bytes and gives out whole UTF-8 characters.
#[derive(Debug, Default)]
pub struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Adds bytes; returns the text that is now complete (possibly empty). Bytes that can never
    /// become valid UTF-8 come out as U+FFFD.
    pub fn push(&mut self, _bytes: &[u8]) -> String {
        todo!()
    }
    /// What is left at the end, lossily.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}
