//! One request on its way to the server and its answer on the way back.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use rustix::net::{RecvFlags, recv};

use super::framing::{BodyReader, Framing, end_of, framed};
use super::head::{RequestHead, ResponseHead, value};
use super::keeper::{MAX_BODY_BYTES, Note, Ticket};
use super::proxy::Shared;
use crate::host::now_ns;

/// Why an exchange did not come to its end; the words for `answers.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The client closed its connection, or its request cannot be read.
    Client,
    /// The server cannot be reached, or broke off.
    Server,
    /// The recorder was told to stop.
    Stopped,
}

impl Cut {
    fn words(self) -> &'static str {
        match self {
            Self::Client => "cut by the client",
            Self::Server => "cut by the server",
            Self::Stopped => "cut by the end of the recording",
        }
    }
}

/// A client's connection and the bytes read from it that nobody has taken.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) held: Vec<u8>,
}

/// An answer on its way.
#[derive(Default)]
struct Passed {
    status: Option<u16>,
    bytes: u64,
}

impl Client {
    /// Reads on; 0 is the end. Looks at the stop flag at every pause.
    pub(super) fn read_on(&mut self, shared: &Shared) -> Result<usize, Cut> {
        let mut buffer = vec![0_u8; 64 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(n) => {
                    self.held.extend_from_slice(&buffer[..n]);
                    return Ok(n);
                }
                Err(e) if pause(&e) && !shared.is_stopped() => {}
                Err(e) if pause(&e) => return Err(Cut::Stopped),
                Err(_) => return Err(Cut::Client),
            }
        }
    }

    /// Whether the client has closed its connection. Bytes of a next request are left there.
    fn is_gone(&self) -> bool {
        let mut byte = [0_u8; 1];
        match recv(
            &self.stream,
            &mut byte,
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        ) {
            Ok((_, n)) => n == 0,
            Err(e) => e != rustix::io::Errno::AGAIN && e != rustix::io::Errno::INTR,
        }
    }

    /// An answer of the recorder's own.
    pub(super) fn refuse(&mut self, shared: &Shared, status: u16, message: &str) {
        let body = serde_json::json!({
            "error": { "code": status, "message": format!("recording proxy: {message}"), "type": "proxy_error" }
        })
        .to_string();
        let reason = if status == 502 {
            "Bad Gateway"
        } else {
            "Bad Request"
        };
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // A client that is gone misses nothing.
        let _ = write_all(&self.stream, head.as_bytes(), shared);
    }

    /// Passes one request on and its answer back. Whether the connection may be used again.
    pub(super) fn exchange(
        &mut self,
        head: &RequestHead,
        ticket: Option<Ticket>,
        shared: &Shared,
    ) -> bool {
        let mut passed = Passed::default();
        let outcome = self.pass(head, ticket, shared, &mut passed);
        if let Some(ticket) = ticket {
            shared.tell(Note::Answer {
                ticket,
                status: passed.status,
                bytes: passed.bytes,
                ended_ns: now_ns(),
                ended: outcome.as_ref().err().map_or("whole", |cut| cut.words()),
            });
        }
        outcome.unwrap_or(false)
    }

    fn pass(
        &mut self,
        head: &RequestHead,
        ticket: Option<Ticket>,
        shared: &Shared,
        passed: &mut Passed,
    ) -> Result<bool, Cut> {
        let framing = match head.framing() {
            Ok(framing) => framing,
            Err(why) => {
                self.refuse(shared, 400, &why);
                return Err(Cut::Client);
            }
        };
        let mut server = shared.upstream.connect().and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(super::proxy::LOOK_EVERY))?;
            stream.set_write_timeout(Some(super::proxy::LOOK_EVERY))?;
            Ok(stream)
        });
        if head.waits() {
            write_all(&self.stream, b"HTTP/1.1 100 Continue\r\n\r\n", shared)?;
        }
        if let Ok(stream) = &server {
            let target = shared.upstream.target(&head.target);
            let text = head.forwarded(&target, &shared.upstream.host(), framing);
            // A server that answers before it has read everything is still to be heard.
            let _ = write_all(stream, &text, shared);
        }
        self.send_body(head, framing, ticket, shared, server.as_ref().ok())?;
        match &mut server {
            Ok(stream) => {
                let answered = self.answer(head, stream, shared, passed);
                // Whatever still runs for this request ends with its connection.
                let _ = stream.shutdown(Shutdown::Both);
                answered
            }
            Err(e) => {
                let why = format!("cannot reach {}: {e}", shared.upstream.url());
                self.refuse(shared, 502, &why);
                Err(Cut::Server)
            }
        }
    }

    /// Passes the body on as it comes, and hands it to the keeper once it is complete.
    fn send_body(
        &mut self,
        head: &RequestHead,
        framing: Framing,
        ticket: Option<Ticket>,
        shared: &Shared,
        server: Option<&TcpStream>,
    ) -> Result<(), Cut> {
        let mut reader = BodyReader::new(framing);
        let mut kept = ticket.map(|_| Vec::new());
        let mut bytes = 0;
        let mut listening = server.is_some();
        while !reader.is_done() {
            let mut body = Vec::new();
            match reader.take(&self.held, &mut body) {
                Ok(taken) => drop(self.held.drain(..taken)),
                Err(why) => {
                    self.refuse(shared, 400, &why);
                    return Err(Cut::Client);
                }
            }
            bytes += body.len() as u64;
            if let Some(server) = server.filter(|_| listening) {
                listening = write_all(server, &framed(framing, &body), shared).is_ok();
            }
            if kept
                .as_ref()
                .is_some_and(|k| k.len() + body.len() > MAX_BODY_BYTES)
            {
                kept = None;
            }
            if let Some(kept) = &mut kept {
                kept.extend_from_slice(&body);
            }
            if !reader.is_done() && self.read_on(shared)? == 0 {
                return Err(Cut::Client);
            }
        }
        if let Some(server) = server.filter(|_| listening) {
            let _ = write_all(server, end_of(framing), shared);
        }
        if let Some(ticket) = ticket {
            shared.tell(Note::Body {
                ticket,
                target: head.target.clone(),
                body: kept,
                bytes,
                encoding: value(&head.headers, "content-encoding"),
            });
        }
        Ok(())
    }

    /// Passes the answer back, each read's bytes at once.
    fn answer(
        &mut self,
        asked: &RequestHead,
        server: &mut TcpStream,
        shared: &Shared,
        passed: &mut Passed,
    ) -> Result<bool, Cut> {
        let mut held = Vec::new();
        let head = loop {
            let parsed = ResponseHead::parse(&held);
            match parsed {
                Ok(Some((head, length))) => {
                    held.drain(..length);
                    // What is only on the way to an answer ends here.
                    if !(100..200).contains(&head.status) {
                        break head;
                    }
                }
                Ok(None) => {
                    let got = self.hear(server, &mut held, shared);
                    match got {
                        Ok(true) => {}
                        Ok(false) => {
                            self.refuse(
                                shared,
                                502,
                                "the server closed the connection before it answered",
                            );
                            return Err(Cut::Server);
                        }
                        Err(Cut::Server) => {
                            self.refuse(
                                shared,
                                502,
                                "the connection to the server failed before it answered",
                            );
                            return Err(Cut::Server);
                        }
                        Err(cut) => return Err(cut),
                    }
                }
                Err(why) => {
                    self.refuse(shared, 502, &why);
                    return Err(Cut::Server);
                }
            }
        };
        let framing = match head.framing(&asked.method) {
            Ok(framing) => framing,
            Err(why) => {
                self.refuse(shared, 502, &why);
                return Err(Cut::Server);
            }
        };
        passed.status = Some(head.status);
        let out = if asked.old && framing == Framing::Chunked {
            Framing::UntilClose
        } else {
            framing
        };
        let keep_alive = asked.keeps_alive() && out != Framing::UntilClose;
        let mut message = head.forwarded(out, keep_alive);
        let mut reader = BodyReader::new(framing);
        loop {
            let mut body = Vec::new();
            let taken = reader.take(&held, &mut body).map_err(|_| Cut::Server)?;
            held.drain(..taken);
            message.extend(framed(out, &body));
            if reader.is_done() {
                message.extend_from_slice(end_of(out));
            }
            write_all(&self.stream, &message, shared)?;
            passed.bytes += body.len() as u64;
            message.clear();
            if reader.is_done() {
                return Ok(keep_alive);
            }
            if !self.hear(server, &mut held, shared)? {
                return if reader.may_close() {
                    Ok(false)
                } else {
                    Err(Cut::Server)
                };
            }
        }
    }

    /// Reads on from the server; `false` is its end. A client that goes meanwhile ends it.
    fn hear(
        &self,
        server: &mut TcpStream,
        held: &mut Vec<u8>,
        shared: &Shared,
    ) -> Result<bool, Cut> {
        let mut buffer = [0_u8; 16 << 10];
        loop {
            match server.read(&mut buffer) {
                Ok(n) => {
                    held.extend_from_slice(&buffer[..n]);
                    return Ok(n > 0);
                }
                Err(e) if pause(&e) => {
                    if shared.is_stopped() {
                        return Err(Cut::Stopped);
                    }
                    if self.is_gone() {
                        return Err(Cut::Client);
                    }
                }
                Err(_) => return Err(Cut::Server),
            }
        }
    }
}

fn pause(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// Writes everything, however slowly the other side reads, until the recorder is told to stop.
fn write_all(mut stream: &TcpStream, mut bytes: &[u8], shared: &Shared) -> Result<(), Cut> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(Cut::Client),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if pause(&e) && !shared.is_stopped() => {}
            Err(e) if pause(&e) => return Err(Cut::Stopped),
            Err(_) => return Err(Cut::Client),
        }
    }
    Ok(())
}
