//! What every test of workloads needs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// How `palindrome` ended and what it printed.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs `palindrome` in a folder.
pub fn palindrome(folder: &Path, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_palindrome"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server of the test's own: `answer` has each connection and what came first on it, read to the
/// end of its head and of as many bytes as `content-length` says.
pub fn upstream<F>(answer: F) -> u16
where
    F: Fn(&mut TcpStream, String) + Send + Sync + Clone + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut stream = stream;
                let request = read_request(&mut stream);
                answer(&mut stream, request);
            });
        }
    });
    port
}

/// A request as text: head, and body as framed.
pub fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some(head) = text.find("\r\n\r\n") {
            let length = text.split("content-length: ").nth(1);
            let length = length.and_then(|t| t.split("\r\n").next()?.parse().ok());
            let chunked = text.contains("transfer-encoding: chunked");
            let whole = if chunked {
                text.ends_with("0\r\n\r\n")
            } else {
                bytes.len() >= head + 4 + length.unwrap_or(0)
            };
            if whole {
                return String::from_utf8(bytes).unwrap();
            }
        }
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "closed in the middle of {text:?}");
        bytes.extend_from_slice(&buffer[..n]);
    }
}

/// Writes, and reads until the other side closes.
pub fn ask(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A POST whose connection closes after the answer.
pub fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: client\r\nContent-Type: application/json\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
