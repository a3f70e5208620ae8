//! The mock's sockets: real HTTP, real time.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::script::{Dialect, End, Reply, Script};
use crate::host::now_ns;
use crate::replay::token_hash;

/// Serves a script on a loopback port until it is killed. Everything that it writes is announced
/// on standard error with the monotonic time of the write, so that a test can compare clocks.
pub fn serve(port: u16, script: Script) -> Result<(), String> {
    let script = Arc::new(script);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|e| format!("cannot listen on port {port}: {e}"))?;
    let ready_at = now_ns() + (script.ready_after_ms * 1e6) as u64;
    if script.die_before_ready {
        sleep_until(ready_at);
        eprintln!("mock: dying as scripted");
        std::process::exit(3);
    }
    eprintln!("mock: listening on port {port}");
    for line in &script.log {
        eprintln!("{line}");
    }
    let state = Arc::new(State::default());
    for stream in listener.incoming().flatten() {
        let (script, state) = (Arc::clone(&script), Arc::clone(&state));
        thread::spawn(move || {
            if let Err(e) = answer(stream, &script, &state, ready_at) {
                eprintln!("mock: connection ended: {e}");
            }
        });
    }
    Ok(())
}

/// What the mock remembers between requests.
#[derive(Default)]
struct State {
    posts: AtomicUsize,
    /// The setting that was asked for last.
    setting: Mutex<Option<String>>,
}

/// A request's choice of a setting: its own, or what was asked for before.
fn setting(state: &State, body: &[u8]) -> Option<String> {
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let own = asked["setting"].as_str().map(str::to_owned);
    own.or_else(|| {
        let setting = state.setting.lock().unwrap_or_else(PoisonError::into_inner);
        setting.clone()
    })
}

fn answer(mut stream: TcpStream, script: &Script, state: &State, ready_at: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (method, path, body) = read_request(&mut stream)?;
    let read_ns = now_ns();
    if method != "POST" {
        let said = script.props.as_ref().filter(|_| path == "/props");
        if let Some(props) = said.and_then(|text| serde_json::from_str(text).ok()) {
            return whole(&mut stream, 200, &props);
        }
        let (status, body) = if read_ns >= ready_at {
            (200, json!({"status": "ok"}))
        } else {
            (
                503,
                json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
            )
        };
        return whole(&mut stream, status, &body);
    }
    if let Some((status, said)) = prompt_route(script, &path, &body) {
        return whole(&mut stream, status, &said);
    }
    if path == "/setting" {
        let asked = setting(&State::default(), &body);
        let known = asked.filter(|name| script.settings.contains_key(name));
        let (status, said) = match &known {
            Some(name) => (200, json!({ "setting": name })),
            None => (
                400,
                json!({"error": {"code": 400, "message": "no such setting", "type": "invalid_request_error"}}),
            ),
        };
        *state.setting.lock().unwrap_or_else(PoisonError::into_inner) = known;
        return whole(&mut stream, status, &said);
    }
    let number = state.posts.fetch_add(1, Ordering::SeqCst);
    eprintln!("mock: post {number} {path} read {read_ns}");
    let chosen = setting(state, &body).and_then(|name| script.settings.get(&name));
    let reply = script.reply(number).slower(chosen.copied().unwrap_or(1.0));
    if reply.status != 200 {
        let error = json!({"error": {"code": reply.status, "message": "refused as scripted", "type": "invalid_request_error"}});
        return whole(&mut stream, reply.status, &error);
    }
    Reply::stream(&reply, script.dialect, &mut stream, read_ns)
}

/// llama-server's two routes from a chat to prompt ids: the text is the messages as JSON, the ids
/// are its bytes. Not counted as posts; the other dialect does not have them.
fn prompt_route(script: &Script, path: &str, body: &[u8]) -> Option<(u16, Value)> {
    if path != "/apply-template" && path != "/tokenize" {
        return None;
    }
    let missing =
        || json!({"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}});
    if script.dialect != Dialect::LlamaCpp || script.no_prompt_routes {
        return Some((404, missing()));
    }
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = if path == "/apply-template" {
        json!({"prompt": asked["messages"].to_string()})
    } else {
        let text = asked["content"].as_str().unwrap_or("");
        json!({"tokens": text.as_bytes()})
    };
    Some((200, said))
}

/// Reads one request: method, target, body.
fn read_request(stream: &mut TcpStream) -> io::Result<(String, String, Vec<u8>)> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut bytes = Vec::new();
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Err(bad("closed before a request"));
        }
        bytes.extend_from_slice(&buffer[..n]);
        let mut headers = [httparse::EMPTY_HEADER; 50];
        let mut request = httparse::Request::new(&mut headers);
        let Ok(parsed) = request.parse(&bytes) else {
            return Err(bad("not a request"));
        };
        let httparse::Status::Complete(head) = parsed else {
            continue;
        };
        let length = request
            .headers
            .iter()
            .find(|h| h.name.eq_ignore_ascii_case("content-length"))
            .and_then(|h| std::str::from_utf8(h.value).ok()?.parse().ok())
            .unwrap_or(0_usize);
        let method = request.method.unwrap_or("").to_owned();
        let path = request.path.unwrap_or("").to_owned();
        let mut body = bytes.split_off(head);
        let held = body.len();
        if held < length {
            body.resize(length, 0);
            stream.read_exact(&mut body[held..])?;
        }
        return Ok((method, path, body));
    }
}

fn whole(stream: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Sleeps, and spins through the last millisecond, to a moment of the monotonic clock.
fn sleep_until(ns: u64) {
    loop {
        let left = ns.saturating_sub(now_ns());
        if left == 0 {
            return;
        }
        if left > 1_000_000 {
            thread::sleep(Duration::from_nanos(left - 1_000_000));
        } else {
            std::hint::spin_loop();
        }
    }
}

impl Reply {
    /// Streams the answer on schedule.
    fn stream(&self, dialect: Dialect, stream: &mut TcpStream, read_ns: u64) -> io::Result<()> {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")?;
        self.event(
            stream,
            &delta(&json!({"role": "assistant", "content": null}), &[], dialect),
            "role",
        )?;
        let mut sent = Vec::new();
        if let Some(every_ms) = self.write_every_ms {
            sent = self.flood(dialect, stream, every_ms)?;
        }
        let one_by_one = self.schedule().into_iter().enumerate();
        let one_by_one = one_by_one.filter(|_| self.write_every_ms.is_none());
        for (number, (at_ms, tokens)) in one_by_one {
            if self.end != End::Done && self.cut_after.is_some_and(|cut| number as u32 >= cut) {
                break;
            }
            let (chunk, ids) = self.chunk(sent.len() as u32, tokens, dialect);
            sleep_until(read_ns + (at_ms * 1e6) as u64);
            self.event(stream, &chunk, &format!("chunk {number}"))?;
            sent.extend(ids);
        }
        match self.end {
            End::Done => {
                self.event(stream, &self.last(dialect, &sent), "finish")?;
                chunked(stream, b"data: [DONE]\n\n")?;
                stream.write_all(b"0\r\n\r\n")
            }
            End::Truncate => stream.write_all(b"0\r\n\r\n"),
            End::Disconnect => {
                chunked(stream, b"data: {\"choices\":[{\"delta\":")?;
                stream.shutdown(std::net::Shutdown::Both)
            }
            End::Garbage => {
                chunked(stream, b"\x00\xffnot an event\n\n")?;
                stream.write_all(b"0\r\n\r\n")
            }
            End::BadJson => {
                chunked(stream, b"data: {\"choices\":[\n\ndata: [DONE]\n\n")?;
                stream.write_all(b"0\r\n\r\n")
            }
            End::Die => {
                eprintln!("mock: dying mid-stream as scripted");
                std::process::exit(9);
            }
            End::Hang => loop {
                thread::sleep(Duration::from_hours(1));
            },
        }
    }

    /// The event of so many tokens after the first `before`, and their ids.
    fn chunk(&self, before: u32, tokens: u32, dialect: Dialect) -> (Value, Vec<u32>) {
        let ids: Vec<u32> = (before..before + tokens).map(|i| 1000 + i).collect();
        let words: Vec<String> = ids.iter().map(|id| format!("t{id} ")).collect();
        let text = words.concat();
        let field = if before < self.reasoning_tokens {
            "reasoning_content"
        } else {
            "content"
        };
        (delta(&json!({ field: text }), &ids, dialect), ids)
    }

    /// All chunks with tokens, each time those that are due; rendered beforehand. The ids.
    fn flood(
        &self,
        dialect: Dialect,
        stream: &mut TcpStream,
        every_ms: f64,
    ) -> io::Result<Vec<u32>> {
        let mut sent = Vec::new();
        let mut due = Vec::new();
        for (at_ms, tokens) in self.schedule() {
            let (chunk, ids) = self.chunk(sent.len() as u32, tokens, dialect);
            due.push((at_ms, framed(format!("data: {chunk}\n\n").as_bytes())));
            sent.extend(ids);
        }
        let begin = now_ns();
        let mut due = due.into_iter().peekable();
        while due.peek().is_some() {
            thread::sleep(Duration::from_nanos((every_ms * 1e6) as u64));
            let now_ms = (now_ns() - begin) as f64 / 1e6;
            let mut bytes = Vec::new();
            while let Some((_, chunk)) = due.next_if(|(at_ms, _)| *at_ms <= now_ms) {
                bytes.extend(chunk);
            }
            stream.write_all(&bytes)?;
        }
        Ok(sent)
    }

    /// One event, announced with the time just before its last byte is written.
    fn event(&self, stream: &mut TcpStream, chunk: &Value, name: &str) -> io::Result<()> {
        let text = format!("data: {chunk}\n\n");
        let pieces: Vec<&[u8]> = text
            .as_bytes()
            .chunks(self.split_bytes.unwrap_or(text.len()).max(1))
            .collect();
        let (last, early) = pieces
            .split_last()
            .map_or((&b""[..], &[][..]), |(l, e)| (*l, e));
        for piece in early {
            chunked(stream, piece)?;
        }
        let ns = now_ns();
        chunked(stream, last)?;
        eprintln!("mock: {name} written {ns}");
        Ok(())
    }

    fn last(&self, dialect: Dialect, sent: &[u32]) -> Value {
        let generated_ms = self
            .schedule()
            .last()
            .map_or(0.0, |(at, _)| at - self.prompt_ms);
        let mut chunk = json!({
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "timings": {
                "cache_n": self.cached_tokens,
                "prompt_n": self.prompt_tokens - self.cached_tokens,
                "prompt_ms": self.prompt_ms,
                "predicted_n": sent.len(),
                "predicted_ms": generated_ms,
            },
        });
        if dialect == Dialect::PalindromeEngine {
            let prompt: Vec<u32> = (0..self.prompt_tokens).collect();
            chunk["token_hashes"] =
                json!({"prompt": token_hash(&prompt), "generated": token_hash(sent)});
        }
        chunk
    }
}

fn delta(delta: &Value, ids: &[u32], dialect: Dialect) -> Value {
    let mut chunk = json!({
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
    });
    if dialect == Dialect::PalindromeEngine && !ids.is_empty() {
        chunk["tokens"] = json!(ids);
    }
    chunk
}

/// One HTTP chunk in one write.
fn chunked(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(&framed(bytes))
}

/// Bytes as an HTTP chunk.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
