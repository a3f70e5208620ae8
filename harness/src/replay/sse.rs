//! Server-sent events, strictly: WHATWG's grammar, but what that grammar would silently ignore
//! (unknown fields, an event cut off by the end of the stream) is reported.

/// Longest event, in bytes of its lines, before the stream counts as hostile.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// One dispatched event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; `error` too where a server writes `error: {...}` for `data: {...}`.
    pub name: Option<String>,
    /// `data` lines joined by a line feed.
    pub data: String,
    /// Offset just past the byte that completed it (its blank line's first terminator byte).
    pub end: u64,
}

/// Why a stream is no stream of events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line with a field name that no event stream has.
    #[error("byte {offset}: {field:?} is not a field of an event stream")]
    UnknownField {
        /// Just past the line.
        offset: u64,
        /// The name, cut to 40 characters.
        field: String,
    },
    /// A line that is not UTF-8.
    #[error("byte {offset}: the line before it is not UTF-8")]
    NotUtf8 {
        /// Just past the line.
        offset: u64,
    },
    /// An event or line without end.
    #[error("byte {offset}: an event longer than {MAX_EVENT_BYTES} bytes")]
    TooLong {
        /// Where the limit was passed.
        offset: u64,
    },
}

/// An incremental parser; bytes may be split anywhere.
#[derive(Clone, Debug, Default)]
pub struct SseParser {
    offset: u64,
    line: Vec<u8>,
    after_cr: bool,
    past_first_line: bool,
    name: Option<String>,
    data: Option<String>,
    failed: Option<SseError>,
}

impl SseParser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more bytes and appends the events they complete. After an error every later call
    /// returns it again.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        for &byte in bytes {
            self.offset += 1;
            let swallowed = self.after_cr && byte == b'\n';
            self.after_cr = byte == b'\r';
            if swallowed {
                continue;
            }
            let step = match byte {
                b'\n' | b'\r' => self.end_line(events),
                _ => self.extend(byte),
            };
            if let Err(error) = step {
                self.failed = Some(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether the stream, ending here, cuts an event or a line off.
    pub fn is_mid_event(&self) -> bool {
        !self.line.is_empty() || self.data.is_some() || self.name.is_some()
    }

    fn extend(&mut self, byte: u8) -> Result<(), SseError> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held >= MAX_EVENT_BYTES {
            return Err(SseError::TooLong {
                offset: self.offset,
            });
        }
        self.line.push(byte);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let text = std::str::from_utf8(&line).map_err(|_| SseError::NotUtf8 {
            offset: self.offset,
        })?;
        let text = if self.past_first_line {
            text
        } else {
            text.strip_prefix('\u{feff}').unwrap_or(text)
        };
        self.past_first_line = true;
        if text.is_empty() {
            let name = self.name.take();
            if let Some(data) = self.data.take() {
                events.push(SseEvent {
                    name,
                    data,
                    end: self.offset,
                });
            }
            return Ok(());
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" | "id" | "retry" => {}
            "event" => self.name = Some(value.to_owned()),
            "data" => self.add_data(value)?,
            // llama-server ends a failed stream so.
            "error" => {
                self.name = Some("error".to_owned());
                self.add_data(value)?;
            }
            _ => {
                return Err(SseError::UnknownField {
                    offset: self.offset,
                    field: field.chars().take(40).collect(),
                });
            }
        }
        Ok(())
    }

    fn add_data(&mut self, value: &str) -> Result<(), SseError> {
        match &mut self.data {
            Some(data) => {
                if data.len() + value.len() >= MAX_EVENT_BYTES {
                    return Err(SseError::TooLong {
                        offset: self.offset,
                    });
                }
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        Ok(())
    }
}

/// Parses a whole body: its events, and the error or cut-off that ends it badly.
pub fn parse_sse(body: &[u8]) -> (Vec<SseEvent>, Option<String>) {
    let mut parser = SseParser::new();
    let mut events = Vec::new();
    match parser.push(body, &mut events) {
        Err(error) => (events, Some(error.to_string())),
        Ok(()) if parser.is_mid_event() => {
            (events, Some("the stream ends inside an event".to_owned()))
        }
        Ok(()) => (events, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn datas(body: &[u8]) -> Vec<String> {
        let (events, error) = parse_sse(body);
        assert_eq!(error, None);
        events.into_iter().map(|e| e.data).collect()
    }

    #[test]
    fn every_line_ending_and_field_shape() {
        assert_eq!(
            datas(b"data: a\n\ndata:b\r\n\r\ndata: c\r\rdata\n\n"),
            ["a", "b", "c", ""]
        );
        assert_eq!(datas(b"\xef\xbb\xbfdata: a\ndata:  b\n\n"), ["a\n b"]);
        assert_eq!(
            datas(b": hello\nid: 7\nretry: 9\n\ndata: x\n: y\n\n"),
            ["x"]
        );
    }

    #[test]
    fn an_event_ends_with_the_byte_that_completes_it() {
        let (events, _) = parse_sse(b"data: a\r\n\r\ndata: b\n\n");
        assert_eq!(events.iter().map(|e| e.end).collect::<Vec<_>>(), [10, 20]);
    }

    #[test]
    fn what_the_grammar_would_ignore_is_reported() {
        let (events, error) = parse_sse(b"data: a\n\n<<<noise\n\n");
        assert_eq!(events.len(), 1);
        assert_eq!(
            error.unwrap(),
            "byte 18: \"<<<noise\" is not a field of an event stream"
        );
        assert!(
            parse_sse(b"data: a\n\ndata: b\n")
                .1
                .unwrap()
                .contains("inside an event")
        );
        assert!(
            parse_sse(b"data: \xff\n\n")
                .1
                .unwrap()
                .contains("not UTF-8")
        );
    }

    #[test]
    fn an_endless_event_is_refused() {
        let (_, error) = parse_sse(&vec![b'a'; MAX_EVENT_BYTES + 1]);
        assert!(error.unwrap().contains("longer than"));
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing(
            body in prop::collection::vec(prop::sample::select(b"data: x\r\n\xff\n:e\n".to_vec()), 0..200),
            cut in 1_usize..7,
        ) {
            let whole = parse_sse(&body);
            let mut parser = SseParser::new();
            let mut events = Vec::new();
            let mut error = None;
            for piece in body.chunks(cut) {
                if let Err(e) = parser.push(piece, &mut events) {
                    error = Some(e.to_string());
                    break;
                }
            }
            if error.is_none() && parser.is_mid_event() {
                error = Some("the stream ends inside an event".to_owned());
            }
            prop_assert_eq!(whole, (events, error));
        }

        #[test]
        fn what_is_written_is_read(lines in prop::collection::vec("[^\r\n]{0,20}", 1..5)) {
            let body = format!("data: {}\n\n", lines.join("\ndata: "));
            prop_assert_eq!(datas(body.as_bytes()), vec![lines.join("\n")]);
        }
    }
}
