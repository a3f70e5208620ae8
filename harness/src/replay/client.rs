//! One request over one fresh loopback connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use super::RawResponse;
use super::http::ResponseReader;
use crate::host::{now_ns, thread_cpu_ns};

/// How long a silent read lasts before the deadline and the interrupt are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A request to a server on loopback.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Where the server listens.
    pub port: u16,
    /// Target, as `/v1/chat/completions`.
    pub path: &'a str,
    /// Bytes to post; absent for a GET.
    pub body: Option<&'a [u8]>,
    /// From the first written byte to the end of the response.
    pub timeout: Duration,
}

/// Sends a request and reads the response to its end. `cancelled` is asked about ten times a
/// second. Never fails: what went wrong is in the response's `error`, and what came before is kept.
pub fn send(request: &Request<'_>, cancelled: &dyn Fn() -> bool) -> RawResponse {
    match Connection::open(request) {
        Ok(connection) => connection.exchange(cancelled),
        Err(failed) => *failed,
    }
}

/// An open connection and the bytes to write: everything that is done before the clock starts.
pub(super) struct Connection {
    stream: TcpStream,
    message: Vec<u8>,
    timeout: Duration,
}

impl Connection {
    /// Connects; the error is the response that says why it could not.
    pub(super) fn open(request: &Request<'_>) -> Result<Self, Box<RawResponse>> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, request.port));
        let before = now_ns();
        let connected = TcpStream::connect_timeout(&address, request.timeout.max(LOOK_EVERY))
            .and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LOOK_EVERY))?;
                stream.set_write_timeout(Some(request.timeout.max(LOOK_EVERY)))?;
                Ok(stream)
            });
        match connected {
            Ok(stream) => Ok(Self {
                stream,
                message: message(request, address),
                timeout: request.timeout,
            }),
            Err(e) => Err(Box::new(
                ResponseReader::new(before)
                    .finish(Some(format!("cannot connect to {address}: {e}"))),
            )),
        }
    }

    /// Writes the request and reads the response to its end.
    pub(super) fn exchange(mut self, cancelled: &dyn Fn() -> bool) -> RawResponse {
        let cpu_before = thread_cpu_ns();
        let sent_ns = now_ns();
        let mut reader = ResponseReader::new(sent_ns);
        // A server may refuse a long body before it has read it all, so a failed write is reported
        // only if no response explains it.
        let written = self.stream.write_all(&self.message);
        drop(self.message);
        let timeout_ns = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline = sent_ns.saturating_add(timeout_ns);
        let read = read_all(&mut self.stream, &mut reader, deadline, cancelled);
        let error = match (read, written) {
            (Ok(()), _) => None,
            (Err(_), Err(e)) if reader.is_untouched() => {
                Some(format!("cannot send the request: {e}"))
            }
            (Err(e), _) => Some(e),
        };
        let mut response = reader.finish(error);
        response.client_cpu_ns = thread_cpu_ns().checked_sub(cpu_before);
        response
    }
}

fn message(request: &Request<'_>, address: SocketAddr) -> Vec<u8> {
    let agent = concat!("palindrome/", env!("CARGO_PKG_VERSION"));
    let (method, entity) = match request.body {
        Some(body) => (
            "POST",
            format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            ),
        ),
        None => ("GET", String::new()),
    };
    let head = format!(
        "{method} {} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n{entity}Connection: close\r\n\r\n",
        request.path
    );
    [head.as_bytes(), request.body.unwrap_or_default()].concat()
}

fn read_all(
    stream: &mut TcpStream,
    reader: &mut ResponseReader,
    deadline: u64,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), String> {
    let mut buffer = vec![0_u8; 64 << 10];
    while !reader.is_done() {
        let read = stream.read(&mut buffer);
        let ns = now_ns();
        match read {
            Ok(0) => return reader.closed(ns),
            Ok(n) => reader.read(&buffer[..n], ns)?,
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(e) => {
                // The same words as for an orderly close, with the system's reason.
                let cut = reader
                    .closed(ns)
                    .err()
                    .unwrap_or_else(|| "the connection failed".to_owned());
                return Err(format!("{cut}: {e}"));
            }
        }
        if cancelled() {
            return Err("interrupted".to_owned());
        }
        if ns >= deadline && !reader.is_done() {
            return Err("the request's time ran out".to_owned());
        }
    }
    Ok(())
}
