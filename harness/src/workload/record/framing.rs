//! Where the body of an HTTP/1.1 message ends, and its bytes without the framing.

/// Longest chunk-size line or trailer.
const MAX_LINE_BYTES: usize = 16 << 10;

/// How a body's end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// That many bytes.
    Length(u64),
    /// Chunks, the last one empty.
    Chunked,
    /// Until the connection closes.
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length(u64),
    UntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    Done,
}

/// A body being read.
#[derive(Debug)]
pub(super) struct BodyReader {
    state: State,
    line: Vec<u8>,
}

impl BodyReader {
    pub(super) fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(n) => State::Length(n),
            Framing::Chunked => State::ChunkSize,
            Framing::UntilClose => State::UntilClose,
        };
        Self {
            state,
            line: Vec::new(),
        }
    }

    /// Whether the body is complete.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether a closed connection is the body's proper end.
    pub(super) fn may_close(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// Takes bytes off the connection, appends the body's own to `body`, and says how many it took:
    /// all of them, unless the body ended.
    pub(super) fn take(&mut self, bytes: &[u8], body: &mut Vec<u8>) -> Result<usize, String> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_done() {
            match self.state {
                State::Length(left) | State::Chunk(left) => {
                    let now = usize::try_from(left).map_or(rest.len(), |n| n.min(rest.len()));
                    body.extend_from_slice(&rest[..now]);
                    rest = &rest[now..];
                    let left = left - now as u64;
                    self.state = match (self.state, left) {
                        (State::Length(_), 0) => State::Done,
                        (State::Length(_), _) => State::Length(left),
                        (_, 0) => State::ChunkEnd,
                        _ => State::Chunk(left),
                    };
                }
                State::UntilClose => {
                    body.extend_from_slice(rest);
                    rest = &[];
                }
                State::ChunkSize | State::ChunkEnd | State::Trailer => {
                    let end = rest.iter().position(|b| *b == b'\n');
                    let now = end.map_or(rest.len(), |end| end + 1);
                    self.line.extend_from_slice(&rest[..now]);
                    rest = &rest[now..];
                    if self.line.len() > MAX_LINE_BYTES {
                        return Err("a line between chunks is too long".to_owned());
                    }
                    if end.is_some() {
                        self.end_line()?;
                    }
                }
                State::Done => {}
            }
        }
        Ok(bytes.len() - rest.len())
    }

    fn end_line(&mut self) -> Result<(), String> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        self.state = match self.state {
            State::ChunkSize => {
                let digits = text.split(';').next().unwrap_or("").trim();
                let size = u64::from_str_radix(digits, 16)
                    .map_err(|_| format!("chunk size {digits:?} is no hexadecimal number"))?;
                if size == 0 {
                    State::Trailer
                } else {
                    State::Chunk(size)
                }
            }
            State::ChunkEnd if text.is_empty() => State::ChunkSize,
            State::ChunkEnd => return Err("a chunk is longer than its size says".to_owned()),
            _ if text.is_empty() => State::Done,
            _ => State::Trailer,
        };
        Ok(())
    }
}

/// Bytes of a body as they go onto a connection.
pub(super) fn framed(framing: Framing, body: &[u8]) -> Vec<u8> {
    if framing != Framing::Chunked {
        return body.to_vec();
    }
    // An empty chunk would end the body.
    if body.is_empty() {
        return Vec::new();
    }
    [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n"].concat()
}

/// What follows the last bytes of a body.
pub(super) fn end_of(framing: Framing) -> &'static [u8] {
    match framing {
        Framing::Chunked => b"0\r\n\r\n",
        Framing::Length(_) | Framing::UntilClose => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_body_is_what_was_framed_however_it_is_split(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6),
            cut in 1_usize..9,
        ) {
            let whole = pieces.concat();
            for framing in [Framing::Chunked, Framing::Length(whole.len() as u64)] {
                let mut wire: Vec<u8> = pieces.iter().flat_map(|p| framed(framing, p)).collect();
                wire.extend_from_slice(end_of(framing));
                wire.extend_from_slice(b"GET /next");
                let (mut reader, mut body, mut taken) = (BodyReader::new(framing), Vec::new(), 0);
                for piece in wire.chunks(cut) {
                    taken += reader.take(piece, &mut body).unwrap();
                }
                prop_assert!(reader.is_done());
                prop_assert_eq!(&body, &whole);
                prop_assert_eq!(&wire[taken..], b"GET /next");
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1_usize..50) {
            let (mut reader, mut body) = (BodyReader::new(Framing::Chunked), Vec::new());
            for piece in bytes.chunks(cut) {
                if reader.take(piece, &mut body).is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn only_a_body_without_a_length_may_end_by_a_close() {
        assert!(BodyReader::new(Framing::UntilClose).may_close());
        assert!(!BodyReader::new(Framing::Length(3)).may_close());
        assert!(!BodyReader::new(Framing::Chunked).may_close());
        assert!(BodyReader::new(Framing::Length(0)).is_done());
    }
}
