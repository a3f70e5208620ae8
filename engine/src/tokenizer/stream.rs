//! Text from a stream of tokens without ever splitting a character.

/// Collects token bytes and gives out whole UTF-8 characters.
#[derive(Debug, Default)]
pub struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Adds bytes; returns the text that is now complete (possibly empty). Bytes that can never
    /// become valid UTF-8 come out as U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut done = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let rest = chunk.invalid();
            let at_end = done + rest.len() == self.pending.len();
            if at_end && may_continue(rest) {
                break;
            }
            if !rest.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
                done += rest.len();
            }
        }
        self.pending.drain(..done);
        text
    }

    /// What is left at the end, lossily.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

/// Whether `bytes` is the beginning of a character, so that more bytes may complete it.
fn may_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_character_waits_for_its_last_byte() {
        let mut stream = Utf8Stream::default();
        let [a, b, c, d] = *"🙂".as_bytes() else {
            panic!("four bytes")
        };
        assert_eq!(stream.push(&[b'x', a]), "x");
        assert_eq!(stream.push(&[b, c]), "");
        assert_eq!(stream.push(&[d, b'y']), "🙂y");
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn broken_bytes_become_replacement_characters() {
        let mut stream = Utf8Stream::default();
        assert_eq!(stream.push(&[0xFF, b'a', 0xE4]), "\u{FFFD}a");
        assert_eq!(stream.push(b"b"), "\u{FFFD}b");
        assert_eq!(stream.push(&[0xE4, 0xB8]), "");
        assert_eq!(stream.finish(), "\u{FFFD}");
    }

    proptest! {
        #[test]
        fn any_cut_of_any_bytes_gives_the_same_text(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            step in 1usize..5,
        ) {
            let mut stream = Utf8Stream::default();
            let mut text: String = bytes.chunks(step).map(|part| stream.push(part)).collect();
            text += &stream.finish();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }
}
