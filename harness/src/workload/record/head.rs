//! Heads of requests and responses, and what of them goes to the other side.

use super::framing::Framing;

/// Longest head.
pub(super) const MAX_HEAD_BYTES: usize = 128 << 10;
/// Headers that are about one connection (RFC 9110, 7.6.1), or about the framing, which is stated
/// anew.
const OWN: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "expect",
];

/// Names and values of a head, in order.
pub(super) type Headers = Vec<(String, Vec<u8>)>;

/// A request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) method: String,
    /// Path and query.
    pub(super) target: String,
    /// Whether it is HTTP/1.0, which knows no chunks.
    pub(super) old: bool,
    pub(super) headers: Headers,
}

/// A response's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) headers: Headers,
}

fn owned(headers: &[httparse::Header<'_>]) -> Headers {
    headers
        .iter()
        .map(|h| (h.name.to_owned(), h.value.to_vec()))
        .collect()
}

/// The values of a header as one text, separated by commas; absent where it is not there.
pub(super) fn value(headers: &Headers, name: &str) -> Option<String> {
    let all: Vec<String> = headers
        .iter()
        .filter(|(n, _)| n.eq_ignore_ascii_case(name))
        .map(|(_, v)| String::from_utf8_lossy(v).trim().to_owned())
        .collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// Whether a header's list holds a word.
fn lists(headers: &Headers, name: &str, word: &str) -> bool {
    value(headers, name).is_some_and(|v| v.split(',').any(|w| w.trim().eq_ignore_ascii_case(word)))
}

/// The framing that a head states, if any. Several lengths that differ, or a length beside chunks,
/// are refused: two programs may read such a message differently.
fn stated(headers: &Headers) -> Result<Option<Framing>, String> {
    let length = value(headers, "content-length");
    if let Some(encoding) = value(headers, "transfer-encoding") {
        if !encoding.eq_ignore_ascii_case("chunked") {
            return Err(format!(
                "transfer-encoding {encoding:?} is not passed on; chunked is"
            ));
        }
        if length.is_some() {
            return Err("a length beside chunks".to_owned());
        }
        return Ok(Some(Framing::Chunked));
    }
    let Some(length) = length else {
        return Ok(None);
    };
    let mut all = length.split(',').map(str::trim);
    let first = all.next().unwrap_or("");
    let digits = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
    match first.parse() {
        Ok(n) if digits && all.all(|other| other == first) => Ok(Some(Framing::Length(n))),
        _ => Err(format!("content-length {length:?} is no number")),
    }
}

impl RequestHead {
    /// Reads a head off the front of `bytes`: it and its length; absent while it is not whole.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, String> {
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request
            .parse(bytes)
            .map_err(|e| format!("not an HTTP/1.1 request: {e}"))?;
        let httparse::Status::Complete(length) = parsed else {
            return if bytes.len() > MAX_HEAD_BYTES {
                Err("the request's head is too long".to_owned())
            } else {
                Ok(None)
            };
        };
        let target = request.path.unwrap_or("/");
        // A client that was told of a proxy names the whole address.
        let target = match target.strip_prefix("http://") {
            Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => target,
        };
        let head = Self {
            method: request.method.unwrap_or("GET").to_owned(),
            target: target.to_owned(),
            old: request.version == Some(0),
            headers: owned(request.headers),
        };
        Ok(Some((head, length)))
    }

    /// How its body ends.
    pub(super) fn framing(&self) -> Result<Framing, String> {
        Ok(stated(&self.headers)?.unwrap_or(Framing::Length(0)))
    }

    /// Whether the client waits to be told that it may send the body.
    pub(super) fn waits(&self) -> bool {
        lists(&self.headers, "expect", "100-continue")
    }

    /// Whether the client's connection may be used again.
    pub(super) fn keeps_alive(&self) -> bool {
        !self.old && !lists(&self.headers, "connection", "close")
    }

    /// The head as it goes to the server, on a connection of its own.
    pub(super) fn forwarded(&self, target: &str, host: &str, framing: Framing) -> Vec<u8> {
        let mut out = format!("{} {target} HTTP/1.1\r\nHost: {host}\r\n", self.method).into_bytes();
        copy(&self.headers, &["host"], &mut out);
        match framing {
            // Only a message that stated a length states one.
            Framing::Length(n) if n > 0 || value(&self.headers, "content-length").is_some() => {
                out.extend_from_slice(format!("Content-Length: {n}\r\n").as_bytes());
            }
            Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Framing::Length(_) | Framing::UntilClose => {}
        }
        out.extend_from_slice(b"Connection: close\r\n\r\n");
        out
    }
}

impl ResponseHead {
    /// As [`RequestHead::parse`].
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, String> {
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response
            .parse(bytes)
            .map_err(|e| format!("the answer is not HTTP/1.1: {e}"))?;
        let httparse::Status::Complete(length) = parsed else {
            return if bytes.len() > MAX_HEAD_BYTES {
                Err("the answer's head is too long".to_owned())
            } else {
                Ok(None)
            };
        };
        let head = Self {
            status: response.code.unwrap_or(0),
            reason: response.reason.unwrap_or("").to_owned(),
            headers: owned(response.headers),
        };
        Ok(Some((head, length)))
    }

    /// How its body ends.
    pub(super) fn framing(&self, method: &str) -> Result<Framing, String> {
        if method == "HEAD" || self.status == 204 || self.status == 304 {
            return Ok(Framing::Length(0));
        }
        Ok(stated(&self.headers)?.unwrap_or(Framing::UntilClose))
    }

    /// The head as it goes to the client.
    pub(super) fn forwarded(&self, framing: Framing, keep_alive: bool) -> Vec<u8> {
        let mut out = format!("HTTP/1.1 {} {}\r\n", self.status, self.reason).into_bytes();
        copy(&self.headers, &[], &mut out);
        if framing == Framing::Chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        } else if let Some(length) = value(&self.headers, "content-length") {
            out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
        }
        if !keep_alive {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out
    }
}

/// Copies what is for the other end: not what is about this connection, nor what `Connection`
/// names.
fn copy(headers: &Headers, without: &[&str], out: &mut Vec<u8>) {
    for (name, value) in headers {
        let is = |other: &&str| name.eq_ignore_ascii_case(other);
        if OWN.iter().any(is) || without.iter().any(is) || lists(headers, "connection", name) {
            continue;
        }
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: &str = "POST /v1/x?a=%20b HTTP/1.1\r\nHost: here:1\r\nAuthorization: Bearer k\r\nX-Odd: 1\r\nConnection: keep-alive, x-odd\r\nTE: trailers\r\nContent-Length: 2\r\n\r\n{}";

    fn ask(text: &str) -> RequestHead {
        RequestHead::parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn everything_but_the_connections_own_goes_on() {
        let (head, length) = RequestHead::parse(ASK.as_bytes()).unwrap().unwrap();
        assert_eq!(&ASK[length..], "{}");
        let out = head.forwarded(&head.target, "there:2", head.framing().unwrap());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /v1/x?a=%20b HTTP/1.1\r\nHost: there:2\r\nAuthorization: Bearer k\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
        );
        assert!(head.keeps_alive());
    }

    #[test]
    fn a_message_that_can_be_read_in_two_ways_is_refused() {
        for (headers, says) in [
            ("Content-Length: 1\r\nContent-Length: 2", "is no number"),
            ("Content-Length: +1", "is no number"),
            (
                "Content-Length: 1\r\nTransfer-Encoding: chunked",
                "beside chunks",
            ),
            ("Transfer-Encoding: gzip, chunked", "not passed on"),
        ] {
            let head = ask(&format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n"));
            let error = head.framing().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let twice = ask("POST / HTTP/1.1\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n");
        assert_eq!(twice.framing(), Ok(Framing::Length(7)));
    }

    #[test]
    fn an_answer_without_a_body_has_none_whatever_it_states() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let (head, _) = ResponseHead::parse(text).unwrap().unwrap();
        assert_eq!(head.framing("HEAD"), Ok(Framing::Length(0)));
        assert_eq!(head.framing("GET"), Ok(Framing::Length(9)));
        let out = head.forwarded(Framing::Length(0), true);
        assert_eq!(out, text);
        assert_eq!(RequestHead::parse(b"POST /").unwrap(), None);
        assert!(RequestHead::parse(b"\x16\x03\x01\r\n\r\n").is_err());
        let whole = ask("GET http://a.b:1/x?y HTTP/1.0\r\n\r\n");
        assert_eq!(
            (whole.target.as_str(), whole.keeps_alive()),
            ("/x?y", false)
        );
    }
}
