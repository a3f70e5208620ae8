//! A small HTTP/1.1 client over plain sockets: it sees bytes as they come, and hangs up at will.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long a test waits for one read before it fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// A response with its whole body.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

/// A response whose body is read as it comes.
pub struct Stream {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
}

impl Stream {
    /// The next chunk of the body; `None` after the last.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = line(&mut self.reader);
        let size =
            usize::from_str_radix(&line, 16).unwrap_or_else(|_| panic!("chunk size {line:?}"));
        let mut data = vec![0; size + 2];
        self.reader.read_exact(&mut data).unwrap();
        data.truncate(size);
        (size > 0).then_some(data)
    }
    /// The data of the next event; one chunk carries one event.
    pub fn event(&mut self) -> Option<String> {
        let chunk = String::from_utf8(self.chunk()?).unwrap();
        let data = chunk
            .strip_prefix("data: ")
            .and_then(|rest| rest.strip_suffix("\n\n"))
            .unwrap_or_else(|| panic!("not one event: {chunk:?}"));
        Some(data.to_owned())
    }
    /// All events that are left, parsed; the final `[DONE]` as a string.
    pub fn rest(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        while let Some(data) = self.event() {
            out.push(if data == "[DONE]" {
                Value::String(data)
            } else {
                serde_json::from_str(&data).unwrap()
            });
        }
        out
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

/// Sends a request and reads the head of the response.
pub fn open(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Stream {
    let mut socket = connect(address);
    socket
        .write_all(&head(method, path, headers, body.len()))
        .unwrap();
    socket.write_all(body).unwrap();
    read_head(socket)
}

pub fn head(method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
    let lines: String = headers
        .iter()
        .map(|(name, value)| [name, ": ", value, "\r\n"].concat())
        .collect();
    format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{lines}content-length: {length}\r\n\r\n").into_bytes()
}

pub fn read_head(socket: TcpStream) -> Stream {
    let mut reader = BufReader::new(socket);
    let status_line = line(&mut reader);
    let status = status_line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("status line {status_line:?}"));
    let mut headers = Vec::new();
    loop {
        let line = line(&mut reader);
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Stream {
        status,
        headers,
        reader,
    }
}

pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    whole(open(address, method, path, headers, body))
}

pub fn whole(mut stream: Stream) -> Response {
    let mut body = Vec::new();
    if find(&stream.headers, "transfer-encoding").is_some() {
        while let Some(chunk) = stream.chunk() {
            body.extend(chunk);
        }
    } else {
        let length =
            find(&stream.headers, "content-length").map_or(0, |text| text.parse().unwrap());
        body.resize(length, 0);
        stream.reader.read_exact(&mut body).unwrap();
    }
    Response {
        status: stream.status,
        headers: stream.headers,
        body,
    }
}

pub fn get(address: SocketAddr, path: &str) -> Response {
    request(address, "GET", path, &[], b"")
}

pub fn post(address: SocketAddr, path: &str, body: &Value) -> Response {
    request(address, "POST", path, &[], body.to_string().as_bytes())
}

pub fn stream(address: SocketAddr, path: &str, body: &Value) -> Stream {
    open(address, "POST", path, &[], body.to_string().as_bytes())
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(have, _)| have == name)
        .map(|(_, value)| value.as_str())
}
