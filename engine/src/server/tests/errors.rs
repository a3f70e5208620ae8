//! Every refusal.

use std::io::Write;

use serde_json::{Value, json};

use super::fake::{Act, Fake, Server, options};
use super::http::{Response, connect, get, head, post, read_head, request, whole};
use crate::scheduler::{EngineError, Finish};
use crate::server::{ApiKeys, AppOptions, ServeOptions};

fn shown(response: &Response) -> String {
    let body = response.json();
    assert_eq!(body["error"]["code"], response.status);
    format!("{} {}", response.status, body["error"])
}

#[test]
fn each_bad_field_is_named() {
    let server = Server::start(Fake::harmony(vec![]));
    let chat = |extra: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let response = post(server.address, "/v1/chat/completions", &body);
        assert_eq!(response.status, 400, "{}", response.text());
        assert_eq!(response.json()["error"]["type"], "invalid_request_error");
        response.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let cases = [
        json!({"temprature": 1}),
        json!({"temperature": "hot"}),
        json!({"temperature": -1}),
        json!({"top_p": 1.5}),
        json!({"max_tokens": 0}),
        json!({"max_tokens": 3.5}),
        json!({"max_tokens": 3, "max_completion_tokens": 4}),
        json!({"seed": "x"}),
        json!({"stop": ["a", ""]}),
        json!({"stop": 3}),
        json!({"stream": "yes"}),
        json!({"stream_options": {"include_usage": true}}),
        json!({"stream": true, "stream_options": {"usage": true}}),
        json!({"logit_bias": {"9999": 1}}),
        json!({"logit_bias": "x"}),
        json!({"presence_penalty": 3}),
        json!({"logprobs": 3}),
        json!({"top_logprobs": 3}),
        json!({"n": 2}),
        json!({"response_format": {"type": "json_object"}}),
        json!({"response_format": {"type": "json_schema", "json_schema": {}}}),
        json!({"response_format": {"type": "yaml"}}),
        json!({"tool_choice": "required"}),
        json!({"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        json!({"tools": [{"type": "web_search"}]}),
        json!({"reasoning_effort": "extreme"}),
        json!({"chat_template_kwargs": []}),
        json!({"mirostat": 2}),
        json!({"samplers": ["top_k"]}),
        json!({"grammar": "root ::= \"a\""}),
        json!({"modalities": ["text", "audio"]}),
        json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}),
    ];
    let lines: Vec<String> = cases.into_iter().map(chat).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn bad_bodies_prompts_and_routes() {
    let server = Server::start(Fake::new(vec![]));
    let at = server.address;
    let raw = |text: &str| request(at, "POST", "/completion", &[], text.as_bytes());
    let lines = [
        shown(&raw("{\"prompt\": \"a\",\n \"stop\": oops}")),
        shown(&raw("")),
        shown(&raw("[]")),
        shown(&raw(&format!("{{\"prompt\": {}", "[".repeat(5000)))),
        shown(&raw("{\"prompt\": \"\u{0}\"}")),
        shown(&raw("{}")),
        shown(&raw("{\"prompt\": \"\"}")),
        shown(&raw("{\"prompt\": [1, 263]}")),
        shown(&raw("{\"prompt\": [[1], [2]]}")),
        shown(&raw("{\"prompt\": [\"a\", \"b\"]}")),
        shown(&raw("{\"prompt\": 5}")),
        shown(&post(
            at,
            "/completion",
            &json!({"prompt": "x".repeat(512)}),
        )),
        shown(&post(at, "/tokenize", &json!({"text": "x"}))),
        shown(&post(at, "/detokenize", &json!({"tokens": [-1]}))),
        shown(&post(at, "/v1/chat/completions", &json!({"messages": []}))),
        shown(&get(at, "/v1/embeddings")),
        shown(&get(at, "/v1/completions")),
        shown(&request(at, "DELETE", "/props", &[], b"")),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_engines_refusals_have_their_status() {
    let fake = Fake::new(vec![]);
    let server = Server::start(fake.clone());
    let ask = |error| {
        *fake.refusal.lock().unwrap() = Some(error);
        shown(&post(
            server.address,
            "/completion",
            &json!({"prompt": "a", "stream": true}),
        ))
    };
    insta::assert_snapshot!(ask(EngineError::QueueFull(8)), @r#"503 {"code":503,"message":"the queue is full (8 requests wait)","type":"unavailable_error"}"#);
    insta::assert_snapshot!(ask(EngineError::ShuttingDown), @r#"503 {"code":503,"message":"the server is shutting down","type":"unavailable_error"}"#);
    insta::assert_snapshot!(ask(EngineError::BadToken { id: 9, vocab: 5 }), @r#"400 {"code":400,"message":"token id 9 is outside the vocabulary of 5","type":"invalid_request_error"}"#);
}

#[test]
fn a_body_of_100_mb_is_refused_and_not_held() {
    let server = Server::start(Fake::new(vec![]));
    let size = 100 << 20;
    let mut socket = connect(server.address);
    socket
        .write_all(&head("POST", "/completion", &[], size))
        .unwrap();
    let zeros = vec![b' '; 1 << 20];
    // The client sends all of it before it reads, as most do.
    for _ in 0..100 {
        socket.write_all(&zeros).unwrap();
    }
    let response = whole(read_head(socket));
    insta::assert_snapshot!(shown(&response), @r#"413 {"code":413,"message":"the request body is larger than this server's limit of 1048576 bytes","type":"invalid_request_error"}"#);
    // Without a declared length too.
    let mut socket = connect(server.address);
    let head = "POST /completion HTTP/1.1\r\nhost: t\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).unwrap();
    for _ in 0..3 {
        socket.write_all(b"100000\r\n").unwrap();
        socket.write_all(&zeros).unwrap();
        socket.write_all(b"\r\n").unwrap();
    }
    assert_eq!(whole(read_head(socket)).status, 413);
}

#[test]
fn keys_guard_all_but_health_and_models() {
    let script = vec![Act::Text("a"), Act::End(Finish::Length)];
    let fake = Fake::new(vec![script]);
    let guarded = AppOptions {
        keys: ApiKeys::new(["the-secret"]),
        ..options()
    };
    let server = Server::with(guarded, ServeOptions::default(), Some(fake));
    let at = server.address;
    for path in ["/health", "/v1/health", "/models", "/v1/models"] {
        assert_eq!(get(at, path).status, 200);
    }
    for path in ["/props", "/metrics", "/slots", "/nowhere"] {
        assert_eq!(get(at, path).status, 401);
    }
    let body = json!({"prompt": "a"}).to_string();
    let ask =
        |headers: &[(&str, &str)]| request(at, "POST", "/completion", headers, body.as_bytes());
    insta::assert_snapshot!(shown(&ask(&[])), @r#"401 {"code":401,"message":"Invalid API Key","type":"authentication_error"}"#);
    assert_eq!(ask(&[("authorization", "Bearer wrong")]).status, 401);
    assert_eq!(ask(&[("authorization", "Bearer the-secret")]).status, 200);
}
