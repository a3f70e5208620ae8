//! HTTP/1.1 responses, read off a socket one read at a time: every body byte is known by the read
//! that brought it. (A client library reads ahead of its caller, so its stamps would be late.)

use std::borrow::Cow;

use super::{Arrival, RawResponse};

/// Longest body that is kept.
const MAX_BODY_BYTES: usize = 256 << 20;
/// Longest head, chunk-size line or trailer.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How the body's end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the blank line.
    Head,
    /// That many bytes are to come.
    Length(u64),
    /// Until the connection closes.
    UntilClose,
    /// Before a chunk: its size line.
    ChunkSize,
    /// In a chunk.
    Chunk(u64),
    /// The line end after a chunk's bytes.
    ChunkEnd,
    /// After the last chunk.
    Trailer,
    /// Complete.
    Done,
}

/// A line without its end, and the bytes after it.
type Line<'a> = (Cow<'a, [u8]>, &'a [u8]);

/// A response being read.
#[derive(Debug)]
pub(super) struct ResponseReader {
    state: State,
    pending: Vec<u8>,
    response: RawResponse,
}

impl ResponseReader {
    /// Starts before any byte came.
    pub(super) fn new(sent_ns: u64) -> Self {
        let response = RawResponse {
            client_cpu_ns: None,
            sent_ns,
            done_ns: sent_ns,
            status: None,
            content_type: None,
            arrivals: Vec::new(),
            error: None,
            body: Vec::new(),
        };
        Self {
            state: State::Head,
            pending: Vec::new(),
            response,
        }
    }

    /// Whether the response is complete.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether no byte of a response was understood yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.state == State::Head && self.response.status.is_none()
    }

    /// Takes the bytes of one read that returned at `ns`.
    pub(super) fn read(&mut self, bytes: &[u8], ns: u64) -> Result<(), String> {
        self.response.done_ns = ns;
        let before = self.response.body.len();
        let outcome = self.take(bytes);
        let end = self.response.body.len();
        if end > before {
            self.response.arrivals.push(Arrival {
                ns,
                end: end as u64,
            });
        }
        outcome
    }

    /// The connection closed at `ns`.
    pub(super) fn closed(&mut self, ns: u64) -> Result<(), String> {
        self.response.done_ns = ns;
        match self.state {
            State::UntilClose | State::Done => {
                self.state = State::Done;
                Ok(())
            }
            State::Head => Err("the server closed the connection before it answered".to_owned()),
            _ => Err("the server closed the connection in the middle of its answer".to_owned()),
        }
    }

    /// The response as far as it came.
    pub(super) fn finish(mut self, error: Option<String>) -> RawResponse {
        self.response.error = error;
        self.response
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            match self.state {
                State::Head => {
                    let Some(rest) = self.head(bytes)? else {
                        return Ok(());
                    };
                    bytes = rest;
                }
                State::Length(left) => {
                    let (now, rest) = split(bytes, left);
                    self.keep(now)?;
                    self.state = after(left - now.len() as u64, State::Length, State::Done);
                    bytes = rest;
                }
                State::Chunk(left) => {
                    let (now, rest) = split(bytes, left);
                    self.keep(now)?;
                    self.state = after(left - now.len() as u64, State::Chunk, State::ChunkEnd);
                    bytes = rest;
                }
                State::UntilClose => {
                    self.keep(bytes)?;
                    return Ok(());
                }
                State::ChunkSize | State::ChunkEnd | State::Trailer => {
                    let Some((line, rest)) = self.line(bytes)? else {
                        return Ok(());
                    };
                    bytes = rest;
                    self.state = match self.state {
                        State::ChunkSize => match chunk_size(&line)? {
                            0 => State::Trailer,
                            size => State::Chunk(size),
                        },
                        State::ChunkEnd if line.is_empty() => State::ChunkSize,
                        State::ChunkEnd => {
                            return Err("a chunk is longer than its size says".to_owned());
                        }
                        _ if line.is_empty() => State::Done,
                        _ => State::Trailer,
                    };
                }
                State::Done => return Err("bytes after the end of the response".to_owned()),
            }
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.response.body.len() + bytes.len() > MAX_BODY_BYTES {
            return Err(format!(
                "the response is longer than {MAX_BODY_BYTES} bytes"
            ));
        }
        self.response.body.extend_from_slice(bytes);
        Ok(())
    }

    /// Gathers a line, without its end, from `pending` and `bytes`; one that came whole is not copied.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Line<'a>>, String> {
        let end = bytes.iter().position(|b| *b == b'\n');
        if let Some(end) = end.filter(|_| self.pending.is_empty()) {
            let line = &bytes[..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            return Ok(Some((Cow::Borrowed(line), &bytes[end + 1..])));
        }
        let taken = end.map_or(bytes.len(), |e| e + 1);
        self.pending.extend_from_slice(&bytes[..taken]);
        if self.pending.len() > MAX_HEAD_BYTES {
            return Err("a chunk's size line is too long".to_owned());
        }
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.pending);
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some((Cow::Owned(line), &bytes[taken..])))
    }

    /// Reads the head once it is whole; returns what follows it.
    fn head<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, String> {
        let held = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut head = httparse::Response::new(&mut headers);
        let parsed = head
            .parse(&self.pending)
            .map_err(|e| format!("the answer is not HTTP/1.1: {e}"))?;
        let httparse::Status::Complete(length) = parsed else {
            if self.pending.len() > MAX_HEAD_BYTES {
                return Err("the response's head is too long".to_owned());
            }
            return Ok(None);
        };
        let status = head.code.unwrap_or(0);
        let find = |name: &str| {
            let header = head
                .headers
                .iter()
                .find(|h| h.name.eq_ignore_ascii_case(name))?;
            Some(String::from_utf8_lossy(header.value).trim().to_owned())
        };
        let state = if (100..200).contains(&status) {
            State::Head
        } else if find("transfer-encoding")
            .is_some_and(|v| v.to_ascii_lowercase().ends_with("chunked"))
        {
            State::ChunkSize
        } else if let Some(length) = find("content-length") {
            let length = length
                .parse()
                .map_err(|_| format!("content-length {length:?} is no number"))?;
            after(length, State::Length, State::Done)
        } else if status == 204 || status == 304 {
            State::Done
        } else {
            State::UntilClose
        };
        if state != State::Head {
            self.response.status = Some(status);
            self.response.content_type = find("content-type");
        }
        self.state = state;
        self.pending.clear();
        Ok(Some(&bytes[length - held..]))
    }
}

fn split(bytes: &[u8], at: u64) -> (&[u8], &[u8]) {
    bytes.split_at(usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len())))
}

fn after(left: u64, more: fn(u64) -> State, end: State) -> State {
    if left == 0 { end } else { more(left) }
}

fn chunk_size(line: &[u8]) -> Result<u64, String> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default();
    let digits = digits.trim_ascii();
    let add = |value: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(16)?;
        value.checked_mul(16)?.checked_add(u64::from(digit))
    };
    let value = digits.iter().try_fold(0, add);
    value.filter(|_| !digits.is_empty()).ok_or_else(|| {
        let digits = String::from_utf8_lossy(digits);
        format!("chunk size {digits:?} is no hexadecimal number")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHUNKED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";

    proptest! {
        #[test]
        fn any_split_gives_the_same_body(cut in 1_usize..40) {
            let mut reader = ResponseReader::new(1);
            for (i, piece) in CHUNKED.chunks(cut).enumerate() {
                prop_assert!(!reader.is_done());
                reader.read(piece, 10 + i as u64).unwrap();
            }
            prop_assert!(reader.is_done());
            let raw = reader.finish(None);
            prop_assert_eq!(raw.body.as_slice(), b"hello, world");
            prop_assert_eq!(raw.status, Some(200));
            prop_assert_eq!(raw.arrivals.last().unwrap().end, 12);
            prop_assert!(raw.arrivals.windows(2).all(|w| w[0].end < w[1].end && w[0].ns < w[1].ns));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 1_usize..50) {
            for head in [&b""[..], b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] {
                let all = [head, &bytes].concat();
                let mut reader = ResponseReader::new(0);
                for piece in all.chunks(cut) {
                    if reader.read(piece, 1).is_err() {
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn each_byte_is_known_by_its_read() {
        let mut reader = ResponseReader::new(0);
        reader
            .read(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nab", 5)
            .unwrap();
        reader.read(b"cdef", 9).unwrap();
        assert!(reader.is_done());
        let raw = reader.finish(None);
        assert_eq!(
            raw.arrivals,
            [Arrival { ns: 5, end: 2 }, Arrival { ns: 9, end: 6 }]
        );
        assert_eq!(raw.done_ns, 9);
    }

    #[test]
    fn ends_too_early_or_too_late_are_told() {
        let mut reader = ResponseReader::new(0);
        assert!(reader.closed(1).unwrap_err().contains("before it answered"));
        reader
            .read(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nab", 5)
            .unwrap();
        assert!(reader.closed(6).unwrap_err().contains("middle"));
        let mut reader = ResponseReader::new(0);
        assert!(
            reader
                .read(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab", 5)
                .is_err()
        );
        let mut reader = ResponseReader::new(0);
        assert!(
            reader
                .read(b"SSH-2.0-x\r\n\r\n", 5)
                .unwrap_err()
                .contains("not HTTP")
        );
    }
}
