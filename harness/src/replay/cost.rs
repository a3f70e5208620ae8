//! What the client itself costs, measured where it runs.
//!
//! Two costs, both CPU time a read that brings one event: to stamp and store it (this program's own
//! work between two reads), and with the system's read on a loopback socket around it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::http::ResponseReader;
use crate::host::{now_ns, thread_cpu_ns};

/// Events of one measurement.
const EVENTS: usize = 20_000;
/// Measurements of which the least counts: other work only ever adds.
const TRIES: usize = 3;

/// CPU nanoseconds an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientCost {
    /// To stamp and store it.
    pub stamp_and_store_ns: f64,
    /// With the system's read; absent where no loopback socket can be had.
    pub with_read_ns: Option<f64>,
}

impl ClientCost {
    /// Measures both; takes a fraction of a second.
    pub fn measure() -> Self {
        let least = |all: &mut dyn Iterator<Item = f64>| all.reduce(f64::min);
        let stored = least(&mut (0..TRIES).map(|_| stamp_and_store()));
        let read = least(&mut (0..TRIES).filter_map(|_| with_read().ok()));
        Self {
            stamp_and_store_ns: stored.unwrap_or_default(),
            with_read_ns: read,
        }
    }
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// One event as servers send it: a chunk of its own.
fn event() -> Vec<u8> {
    let data = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\
                \"finish_reason\":null}],\"tokens\":[1234]}\n\n";
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

fn stamp_and_store() -> f64 {
    let event = event();
    let mut reader = ResponseReader::new(now_ns());
    // The bytes are well-formed, so no read fails; a failed one would cost less, not more.
    let _ = reader.read(HEAD, now_ns());
    let before = thread_cpu_ns();
    for _ in 0..EVENTS {
        let _ = reader.read(&event, now_ns());
    }
    let spent = thread_cpu_ns() - before;
    std::hint::black_box(reader.finish(None).arrivals.len());
    spent as f64 / EVENTS as f64
}

fn with_read() -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut from = TcpStream::connect(listener.local_addr()?)?;
    let (mut to, _) = listener.accept()?;
    to.set_nodelay(true)?;
    let mut reader = ResponseReader::new(now_ns());
    let _ = reader.read(HEAD, now_ns());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let event = event();
            // A reader that is gone ends it.
            (0..EVENTS).all(|_| to.write_all(&event).is_ok())
        });
        // One event a read, however many wait.
        let mut buffer = vec![0_u8; event().len()];
        let mut reads = 0_u64;
        let before = thread_cpu_ns();
        loop {
            let n = from.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            let _ = reader.read(&buffer[..n], now_ns());
            reads += 1;
        }
        let spent = thread_cpu_ns() - before;
        Ok(spent as f64 / reads.max(1) as f64)
    })
}
