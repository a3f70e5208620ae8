//! Loading, stopping, slow heads.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::fake::{Act, Fake, Server, eventually, options};
use super::http::{connect, get, post, stream};
use crate::scheduler::Finish;
use crate::server::ServeOptions;

#[test]
fn until_the_model_is_loaded_there_is_503() {
    let server = Server::with(options(), ServeOptions::default(), None);
    for path in ["/health", "/v1/models", "/props", "/metrics"] {
        let response = get(server.address, path);
        assert_eq!(response.status, 503);
        assert_eq!(
            response.json(),
            json!({"error": {
                "code": 503, "message": "Loading model", "type": "unavailable_error",
            }})
        );
    }
    assert_eq!(
        post(server.address, "/completion", &json!({"prompt": "a"})).status,
        503
    );
    assert_eq!(get(server.address, "/nowhere").status, 404);
}

#[test]
fn stopping_lets_a_running_answer_end() {
    let fake = Fake::new(vec![vec![
        Act::Text("a"),
        Act::Gate,
        Act::Text("b"),
        Act::End(Finish::Length),
    ]]);
    let serve = ServeOptions {
        drain: Duration::from_mins(1),
        ..ServeOptions::default()
    };
    let mut server = Server::with(options(), serve, Some(fake.clone()));
    let mut answer = stream(
        server.address,
        "/completion",
        &json!({"prompt": "hi", "stream": true}),
    );
    assert!(answer.event().is_some());
    server.ask_to_stop();
    eventually("no new connections", || {
        TcpStream::connect(server.address).is_err()
    });
    fake.gate.notify_one();
    assert_eq!(answer.rest().len(), 2);
    server.join();
}

#[test]
fn stopping_is_bounded() {
    let fake = Fake::new(vec![vec![Act::Gate, Act::Vanish]]);
    let serve = ServeOptions {
        drain: Duration::from_millis(10),
        ..ServeOptions::default()
    };
    let mut server = Server::with(options(), serve, Some(fake.clone()));
    let mut answer = stream(
        server.address,
        "/v1/completions",
        &json!({"prompt": "hi", "stream": true}),
    );
    eventually("submitted", || fake.requests.lock().unwrap().len() == 1);
    server.ask_to_stop();
    let events = answer.rest();
    assert_eq!(events[0]["error"]["code"], 500);
    server.join();
}

#[test]
fn a_head_that_trickles_in_is_cut_off() {
    let serve = ServeOptions {
        header_timeout: Duration::from_millis(50),
        ..ServeOptions::default()
    };
    let server = Server::with(options(), serve, Some(Fake::new(vec![])));
    let mut socket = connect(server.address);
    socket
        .write_all(b"GET /health HTTP/1.1\r\nx-slow: ")
        .unwrap();
    let mut left = Vec::new();
    // Either an answer that says so or a closed connection, but an end.
    let _ = socket.read_to_end(&mut left);
    assert!(!left.starts_with(b"HTTP/1.1 200"));
    let mut huge = connect(server.address);
    let filler = vec![b'a'; 1 << 20];
    let _ = huge
        .write_all(b"GET /health HTTP/1.1\r\nx-huge: ")
        .and_then(|()| huge.write_all(&filler));
    let mut answer = Vec::new();
    let _ = huge.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}
