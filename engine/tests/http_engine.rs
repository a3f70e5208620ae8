//! The real server over a tiny model: caching, cancelling, queueing, stopping.
#![allow(missing_docs, reason = "tests")]

mod support;

use serde_json::{Value, json};
use support::http::{get, post, stream};
use support::{Model, Server, engine, eventually, stderr};

fn metric(server: &Server, name: &str) -> f64 {
    let text = get(server.address, "/metrics").text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("palindrome_{name} ")))
        .unwrap();
    line.parse().unwrap()
}

fn ask(server: &Server, body: &Value) -> Value {
    let answer = post(server.address, "/completion", body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[test]
fn a_continued_conversation_hits_the_cache_and_changes_no_token() {
    let model = Model::tiny();
    let server = Server::start(&model.path, &["--ctx", "1024"]);
    let first = "def add(a, b):\n    return a + b\n".repeat(4);
    let body = |prompt: &str, cache: bool| {
        json!({
            "prompt": prompt, "n_predict": 24, "temperature": 0, "return_tokens": true,
            "cache_prompt": cache, "ignore_eos": true,
        })
    };
    let one = ask(&server, &body(&first, true));
    assert_eq!(one["tokens"].as_array().unwrap().len(), 24);
    assert_eq!(one["timings"]["cache_n"], 0);
    let longer = format!("{first}def mul(a, b):\n");
    let cached = ask(&server, &body(&longer, true));
    assert!(
        cached["timings"]["cache_n"].as_u64().unwrap() > 0,
        "{}",
        cached["timings"]
    );
    let cold = ask(&server, &body(&longer, false));
    assert_eq!(cold["timings"]["cache_n"], 0);
    assert_eq!(cold["tokens"], cached["tokens"]);
    assert_eq!(
        cold["timings"]["token_hashes"],
        cached["timings"]["token_hashes"]
    );
    assert!(metric(&server, "prompt_tokens_cached_total") > 0.0);
}

#[test]
fn streamed_and_whole_answers_are_the_same_and_seeds_repeat() {
    let model = Model::tiny();
    let server = Server::start(&model.path, &["--ctx", "1024", "--alias", "tiny-one"]);
    let mut body = json!({
        "messages": [{"role": "user", "content": "hello"}], "max_tokens": 20, "temperature": 1.5,
        "seed": 11, "return_tokens": true, "stream": false,
    });
    let whole = post(server.address, "/v1/chat/completions", &body);
    assert_eq!(whole.status, 200, "{}", whole.text());
    let whole = whole.json();
    assert_eq!(whole["model"], "tiny-one");
    body["stream"] = json!(true);
    let events = stream(server.address, "/v1/chat/completions", &body).rest();
    let tokens: Vec<Value> = events
        .iter()
        .filter_map(|event| event.get("tokens"))
        .map(|tokens| tokens[0].clone())
        .collect();
    assert_eq!(Value::from(tokens), whole["tokens"]);
    let timings = &events[events.len() - 2]["timings"];
    assert_eq!(timings["token_hashes"], whole["timings"]["token_hashes"]);
    assert_eq!(timings["seed"], 11);
}

#[test]
fn hanging_up_frees_the_engine() {
    let model = Model::tiny();
    let server = Server::start(&model.path, &["--ctx", "4096", "--parallel", "1"]);
    let long = json!({"prompt": "a", "stream": true, "ignore_eos": true, "return_tokens": true});
    let mut decoding = stream(server.address, "/completion", &long);
    assert!(decoding.event().is_some());
    // Another waits in the queue and leaves: the first goes on.
    drop(stream(server.address, "/completion", &long));
    assert!(decoding.event().is_some());
    drop(decoding);
    eventually("both are cancelled", || {
        metric(&server, "requests_cancelled_total") >= 2.0
    });
    eventually("nothing runs", || {
        metric(&server, "requests_processing") == 0.0
    });
    let answer = ask(
        &server,
        &json!({"prompt": "b", "n_predict": 2, "ignore_eos": true}),
    );
    assert_eq!(answer["tokens_predicted"], 2);
}

#[test]
fn sigterm_ends_it_with_code_0_and_keys_are_never_shown() {
    let model = Model::tiny();
    let server = Server::start(&model.path, &["--ctx", "512", "--api-key", "sesame-4711"]);
    assert_eq!(
        post(server.address, "/completion", &json!({"prompt": "a"})).status,
        401
    );
    let (code, log) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("sesame"), "{log}");
}

#[test]
fn a_port_in_use_is_said_so() {
    let model = Model::tiny();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = engine()
        .args(["serve", model.arg(), "--no-store", "--port", &port])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        stderr(&refused),
        format!(
            "error: port {port} on 127.0.0.1 is in use; stop the other program or choose another --port\n"
        )
    );
}
