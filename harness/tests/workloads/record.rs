//! The recording proxy between a client and a server that are both the test's own.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use palindrome_harness::workload::record::{Kept, Recorder};
use palindrome_harness::workload::{AnswerLine, Folder, IndexLine};

use crate::support::{ask, post, upstream};

const CHAT: &str = "/v1/chat/completions";

/// A recorder in a thread.
struct Recording {
    folder: tempfile::TempDir,
    port: u16,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Kept>,
}

impl Recording {
    fn of(upstream: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let recorder = Recorder::begin(
            upstream.parse().unwrap(),
            listen,
            &folder.path().join("out"),
        )
        .unwrap();
        let port = recorder.address().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let run = recorder.run(&|| stopped.load(Ordering::SeqCst), &|_| {});
            run.unwrap().kept
        });
        Self {
            folder,
            port,
            stop,
            thread,
        }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Ends it; what it kept, and the folder.
    fn end(self) -> (Kept, Folder, Vec<AnswerLine>, tempfile::TempDir) {
        self.stop.store(true, Ordering::SeqCst);
        let out = self.out();
        let kept = self.thread.join().unwrap();
        let answers = fs::read_to_string(out.join("answers.jsonl")).unwrap();
        let answers = answers
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        (kept, Folder::read(&out).unwrap(), answers, self.folder)
    }
}

fn lines(folder: &Folder) -> Vec<IndexLine> {
    folder
        .bodies
        .iter()
        .map(|b| b.line.clone().unwrap())
        .collect()
}

/// A server that keeps what it was asked and answers all alike.
fn listening(answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    let port = upstream(move |stream, request| {
        kept.lock().unwrap().push(request);
        stream.write_all(answer.as_bytes()).unwrap();
    });
    (port, asked)
}

#[test]
fn requests_and_answers_go_through_unchanged_and_bodies_are_kept_byte_for_byte() {
    let (server, asked) = listening(
        "HTTP/1.1 201 Made\r\nX-Own: 1\r\nContent-Type: text/plain\r\nKeep-Alive: timeout=5\r\nContent-Length: 5\r\n\r\nhello",
    );
    let recording = Recording::of(&format!("http://127.0.0.1:{server}/below"));
    let body = "{ \"messages\" : [ ],\n\t\"x\": \"\u{e9}\\u0041\" }";
    let answer = ask(
        recording.port,
        &post(
            &format!("{CHAT}?a=%20b&api_key=k1"),
            "Authorization: Bearer k2\r\nX-Mine: 2\r\n",
            body,
        ),
    );
    assert_eq!(
        answer,
        "HTTP/1.1 201 Made\r\nX-Own: 1\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    );
    // Not one that asks for an answer: passed on, not kept.
    ask(
        recording.port,
        "DELETE /files/7?x HTTP/1.1\r\nHost: client\r\nConnection: close\r\n\r\n",
    );
    let (kept, folder, answers, dir) = recording.end();
    let asked = asked.lock().unwrap();
    assert_eq!(
        asked[0],
        format!(
            "POST /below{CHAT}?a=%20b&api_key=k1 HTTP/1.1\r\nHost: 127.0.0.1:{server}\r\nContent-Type: application/json\r\nAuthorization: Bearer k2\r\nX-Mine: 2\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    );
    assert!(asked[1].starts_with("DELETE /below/files/7?x HTTP/1.1\r\n"));
    assert_eq!(
        (kept.bodies, kept.redacted, kept.left_out, kept.ended),
        (1, 0, 0, 1)
    );
    assert_eq!(
        fs::read(folder.path.join("00001.json")).unwrap(),
        body.as_bytes()
    );
    let line = &lines(&folder)[0];
    assert_eq!(
        (line.at_s, line.path.as_str()),
        (Some(0.0), "/v1/chat/completions?a=%20b&api_key=[redacted]")
    );
    assert_eq!(
        (
            answers[0].status,
            answers[0].bytes,
            answers[0].ended.as_str()
        ),
        (Some(201), 5, "whole")
    );
    for file in ["index.jsonl", "answers.jsonl"] {
        let text = fs::read_to_string(folder.path.join(file)).unwrap();
        assert!(!text.contains("k1") && !text.contains("k2"), "{text}");
    }
    drop(dir);
}

#[test]
fn secrets_in_bodies_are_redacted_and_said_to_be_but_the_server_gets_them() {
    let (server, asked) = listening("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let recording = Recording::of(&format!("http://127.0.0.1:{server}"));
    let body = r#"{"api_key":"abc","prompt":"use sk-Ab12Cd34Ef56Gh78Ij90 here"}"#;
    ask(recording.port, &post("/v1/completions", "", body));
    ask(recording.port, &post("/v1/completions", "", "no json"));
    ask(
        recording.port,
        &post("/v1/completions", "Content-Encoding: gzip\r\n", "{}"),
    );
    let (kept, folder, _, _dir) = recording.end();
    assert!(asked.lock().unwrap()[0].ends_with(body));
    assert_eq!(
        fs::read_to_string(folder.path.join("00001.json")).unwrap(),
        r#"{"api_key":"[redacted]","prompt":"use [redacted] here"}"#
    );
    assert_eq!(
        lines(&folder)[0].redacted,
        [
            "field `api_key`: 3 bytes at byte 12",
            "a key sk-...: 23 bytes at byte 31"
        ]
    );
    assert_eq!((kept.bodies, kept.redacted, kept.left_out), (1, 1, 2));
    let why: Vec<&str> = folder
        .left_out
        .iter()
        .map(|l| l.left_out.as_deref().unwrap())
        .collect();
    assert!(
        why[0].starts_with("not JSON") && why[1].starts_with("content-encoding gzip"),
        "{why:?}"
    );
}

#[test]
fn each_event_goes_on_before_the_next_one_is_written() {
    let (go, wait) = channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let server = upstream(move |stream, _| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            .unwrap();
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            stream
                .write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
                .unwrap();
            // Only a client that has the event lets the server go on.
            wait.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
    });
    let recording = Recording::of(&format!("http://127.0.0.1:{server}"));
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, recording.port)).unwrap();
    // A body in chunks, on a connection that stays open for a second request.
    let ask = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
    );
    for _ in 0..2 {
        client.write_all(ask.as_bytes()).unwrap();
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            read_until(&mut client, event);
            go.send(()).unwrap();
        }
        read_until(&mut client, "0\r\n\r\n");
    }
    drop(client);
    let (kept, folder, answers, _dir) = recording.end();
    assert_eq!(kept.bodies, 2);
    assert_eq!(fs::read(folder.path.join("00002.json")).unwrap(), b"{}");
    let times: Vec<f64> = lines(&folder).iter().map(|l| l.at_s.unwrap()).collect();
    assert!(times[0] == 0.0 && times[1] > 0.0, "{times:?}");
    assert!(
        answers.iter().all(|a| a.ended == "whole" && a.bytes == 18),
        "{answers:?}"
    );
}

/// Reads until the text ends so.
fn read_until(stream: &mut TcpStream, end: &str) {
    let mut text = Vec::new();
    let mut byte = [0_u8];
    while !text.ends_with(end.as_bytes()) {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "closed after {text:?}");
        text.push(byte[0]);
    }
}

/// A server that answers a little, or nothing, and tells when its connection ends.
fn silent(first: &'static str) -> (u16, Receiver<()>) {
    let (ended, end) = channel();
    let ended = Arc::new(Mutex::new(ended));
    let port = upstream(move |stream, _| {
        stream.write_all(first.as_bytes()).unwrap();
        let mut byte = [0_u8];
        while stream.read(&mut byte).is_ok_and(|n| n > 0) {}
        ended.lock().unwrap().send(()).unwrap();
    });
    (port, end)
}

#[test]
fn a_client_that_leaves_ends_its_request_at_the_server() {
    for (first, status) in [
        ("", None),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
            Some(200),
        ),
    ] {
        let (server, end) = silent(first);
        let recording = Recording::of(&format!("http://127.0.0.1:{server}"));
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, recording.port)).unwrap();
        client.write_all(post(CHAT, "", "{}").as_bytes()).unwrap();
        if status.is_some() {
            read_until(&mut client, "data: 1\n\n");
        }
        drop(client);
        // Without the cancellation the server would wait for ever, and so would this.
        end.recv().unwrap();
        let (_, _, answers, _dir) = recording.end();
        assert_eq!(answers[0].status, status);
        assert_eq!(answers[0].ended, "cut by the client");
    }
}

#[test]
fn the_end_of_the_recording_cuts_what_is_under_way_and_keeps_its_body() {
    let (server, end) = silent("");
    let recording = Recording::of(&format!("http://127.0.0.1:{server}"));
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, recording.port)).unwrap();
    client.write_all(post(CHAT, "", "{}").as_bytes()).unwrap();
    while !recording.out().join("00001.json").exists() {
        thread::yield_now();
    }
    let (kept, folder, answers, _dir) = recording.end();
    end.recv().unwrap();
    assert_eq!((kept.bodies, kept.ended), (1, 1));
    assert_eq!(folder.notes, Vec::<String>::new());
    assert_eq!(answers[0].ended, "cut by the end of the recording");
}

#[test]
fn a_server_that_is_not_there_or_breaks_off_is_told_to_the_client() {
    let gone = {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.local_addr().unwrap().port()
    };
    let recording = Recording::of(&format!("http://127.0.0.1:{gone}"));
    let answer = ask(recording.port, &post(CHAT, "", "{}"));
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("cannot reach http://127.0.0.1:"),
        "{answer}"
    );
    let answer = ask(recording.port, "nonsense\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let (kept, _, answers, _dir) = recording.end();
    assert_eq!(
        (kept.bodies, answers[0].ended.as_str()),
        (1, "cut by the server")
    );

    let server = upstream(|stream, _| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal")
            .unwrap();
    });
    let recording = Recording::of(&format!("http://127.0.0.1:{server}"));
    let answer = ask(recording.port, &post(CHAT, "", "{}"));
    assert!(answer.ends_with("\r\n\r\nhal"), "{answer}");
    let (_, _, answers, _dir) = recording.end();
    assert_eq!(
        (answers[0].bytes, answers[0].ended.as_str()),
        (3, "cut by the server")
    );
}

#[test]
fn a_client_that_waits_for_leave_to_send_gets_it() {
    let (server, asked) = listening("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let recording = Recording::of(&format!("http://127.0.0.1:{server}"));
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, recording.port)).unwrap();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: c\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    );
    client.write_all(head.as_bytes()).unwrap();
    read_until(&mut client, "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"{}").unwrap();
    read_until(&mut client, "\r\n\r\n");
    drop(client);
    let (kept, _, _, _dir) = recording.end();
    assert_eq!(kept.bodies, 1);
    assert!(!asked.lock().unwrap()[0].contains("Expect"));
}
