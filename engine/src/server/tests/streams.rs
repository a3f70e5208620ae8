//! Streamed answers, event by event.

use serde_json::{Value, json};

use super::fake::{
    Act, CALL, CHANNEL, CONSTRAIN, END, Fake, MESSAGE, RETURN, START, Server, eventually,
};
use super::http::stream;
use super::redact::{lines, redact};
use crate::scheduler::{EngineError, Finish};

fn hello() -> Vec<Act> {
    vec![
        Act::Token(CHANNEL),
        Act::Text("analysis"),
        Act::Token(MESSAGE),
        Act::Text("Hm"),
        Act::Token(END),
        Act::Token(START),
        Act::Text("assistant"),
        Act::Token(CHANNEL),
        Act::Text("final"),
        Act::Token(MESSAGE),
        Act::Text("Hé"),
        Act::Token(RETURN),
        Act::End(Finish::Stop),
    ]
}

#[test]
fn chat_streams_reasoning_then_content_then_usage() {
    let server = Server::start(Fake::harmony(vec![hello()]));
    let body = json!({
        "messages": [{"role": "user", "content": "hi"}], "stream": true, "seed": 5,
        "stream_options": {"include_usage": true},
    });
    let mut answer = stream(server.address, "/v1/chat/completions", &body);
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .headers
            .contains(&("content-type".into(), "text/event-stream".into()))
    );
    insta::assert_snapshot!(lines(answer.rest()));
}

#[test]
fn with_return_tokens_every_token_is_an_event() {
    let server = Server::start(Fake::harmony(vec![hello()]));
    let body = json!({
        "messages": [{"role": "user", "content": "hi"}], "stream": true, "return_tokens": true,
    });
    let events = stream(server.address, "/v1/chat/completions", &body).rest();
    let tokens: Vec<u64> = events
        .iter()
        .filter_map(|event| event.get("tokens"))
        .map(|tokens| {
            let tokens = tokens.as_array().unwrap();
            assert_eq!(tokens.len(), 1);
            tokens[0].as_u64().unwrap()
        })
        .collect();
    assert_eq!(tokens.len(), 34);
    assert_eq!(tokens[0], u64::from(CHANNEL));
    assert_eq!(tokens[33], u64::from(RETURN));
    // The role, 34 tokens, the end, [DONE].
    assert_eq!(events.len(), 37);
    assert_eq!(
        events[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    assert_eq!(events[1]["choices"][0]["delta"], json!({"content": ""}));
    assert_eq!(events[35]["timings"]["predicted_n"], 34);
    assert_eq!(events[36], "[DONE]");
}

#[test]
fn with_timings_per_token_every_event_of_a_token_counts_the_tokens_so_far() {
    let server = Server::start(Fake::harmony(vec![hello()]));
    let body = json!({
        "messages": [{"role": "user", "content": "hi"}], "stream": true, "timings_per_token": true,
    });
    let events = stream(server.address, "/v1/chat/completions", &body).rest();
    // The role goes out with the first token; the first visible text stands for hidden ones too.
    assert_eq!(events[0]["timings"]["predicted_n"], 1);
    let visible = events
        .iter()
        .find(|event| {
            event["choices"][0]["delta"]
                .get("reasoning_content")
                .is_some()
        })
        .unwrap();
    assert!(visible["timings"]["predicted_n"].as_u64().unwrap() > 1);
    assert!(visible["timings"].get("token_hashes").is_none());
    let counts: Vec<u64> = events
        .iter()
        .filter_map(|event| event["timings"]["predicted_n"].as_u64())
        .collect();
    assert!(counts.is_sorted());
    assert_eq!(counts.last(), Some(&34));
    assert_eq!(counts.len(), events.len() - 1);
}

#[test]
fn tool_calls_stream_their_name_once_and_their_arguments_in_fragments() {
    let script = vec![
        Act::Token(CHANNEL),
        Act::Text("commentary to=functions.add "),
        Act::Token(CONSTRAIN),
        Act::Text("json"),
        Act::Token(MESSAGE),
        Act::Text("{\"a\":1}"),
        Act::Token(CALL),
        Act::End(Finish::Stop),
    ];
    let server = Server::start(Fake::harmony(vec![script]));
    let tool = json!({"type": "function", "function": {"name": "add", "parameters": {}}});
    let body = json!({
        "messages": [{"role": "user", "content": "hi"}], "stream": true, "tools": [tool],
    });
    let events = stream(server.address, "/v1/chat/completions", &body).rest();
    let calls: Vec<&Value> = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"].get("tool_calls"))
        .map(|calls| &calls[0])
        .collect();
    assert_eq!(calls[0]["function"]["name"], "add");
    assert!(calls[0]["id"].is_string());
    assert!(calls[1..].iter().all(|call| call.get("id").is_none()));
    assert!(calls.iter().all(|call| call["index"] == 0));
    let arguments: String = calls
        .iter()
        .map(|call| call["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(arguments, "{\"a\":1}");
    let finish = &events[events.len() - 2]["choices"][0];
    assert_eq!(finish["finish_reason"], "tool_calls");
}

#[test]
fn completions_stream_whole_characters() {
    let script = vec![Act::Text("é!"), Act::Token(RETURN), Act::End(Finish::Stop)];
    let server = Server::start(Fake::new(vec![script.clone(), script]));
    let body = json!({"prompt": "hi", "stream": true, "seed": 1});
    insta::assert_snapshot!(lines(
        stream(server.address, "/v1/completions", &body).rest()
    ));
    let events = stream(server.address, "/completion", &body).rest();
    let shown: Vec<(String, bool)> = events
        .iter()
        .map(|event| {
            (
                event["content"].as_str().unwrap().to_owned(),
                event["stop"].as_bool().unwrap(),
            )
        })
        .collect();
    let expected = [("", false), ("é", false), ("!", false), ("", true)];
    assert_eq!(shown, expected.map(|(text, stop)| (text.to_owned(), stop)));
    let last = redact(events[3].clone());
    assert_eq!(last["stop_type"], "eos");
    assert_eq!(last["timings"]["exactness"], "exact");
}

#[test]
fn held_back_text_comes_out_before_the_end() {
    let script = vec![Act::Text("ab<"), Act::Token(RETURN), Act::End(Finish::Stop)];
    let server = Server::start(Fake::new(vec![script]));
    let body = json!({"prompt": "hi", "stream": true, "stop": "<end>"});
    let events = stream(server.address, "/completion", &body).rest();
    let text: String = events
        .iter()
        .map(|event| event["content"].as_str().unwrap())
        .collect();
    assert_eq!(text, "ab<");
    assert_eq!(events.last().unwrap()["content"], "<");
}

#[test]
fn events_go_out_at_once_and_headers_before_them() {
    let script = vec![
        Act::Gate,
        Act::Text("a"),
        Act::Gate,
        Act::Text("b"),
        Act::End(Finish::Length),
    ];
    let fake = Fake::new(vec![script]);
    let server = Server::start(fake.clone());
    let body = json!({"prompt": "hi", "stream": true});
    // The head arrives although nothing has been computed.
    let mut answer = stream(server.address, "/completion", &body);
    fake.gate.notify_one();
    assert!(answer.event().unwrap().contains("\"content\":\"a\""));
    fake.gate.notify_one();
    assert!(answer.event().unwrap().contains("\"content\":\"b\""));
    assert!(answer.event().unwrap().contains("\"stop_type\":\"limit\""));
    assert_eq!(answer.event(), None);
}

#[test]
fn a_failure_in_the_middle_is_an_event() {
    let failure = EngineError::Numeric("layer 3 gave NaN".into());
    let script = vec![Act::Text("a"), Act::Fail(failure)];
    let fake = Fake::new(vec![
        script.clone(),
        script,
        vec![Act::Text("a"), Act::Vanish],
    ]);
    let server = Server::start(fake);
    let mut body = json!({"prompt": "hi", "stream": true});
    let events = stream(server.address, "/v1/completions", &body).rest();
    assert_eq!(
        events[1]["error"],
        json!({"code": 500, "message": "layer 3 gave NaN", "type": "server_error"})
    );
    assert_eq!(events[2], "[DONE]");
    body["stream"] = json!(false);
    let whole = super::http::post(server.address, "/v1/completions", &body);
    assert_eq!(whole.status, 500);
    let whole = super::http::post(server.address, "/v1/completions", &body);
    assert_eq!(
        whole.json()["error"]["message"],
        "the engine stopped in the middle of this request"
    );
}

#[test]
fn hanging_up_cancels_in_prompt_and_in_decode() {
    let fake = Fake::new(vec![
        vec![Act::Gate],
        vec![Act::Text("a"), Act::Gate],
        vec![Act::Gate],
        vec![Act::Text("still here"), Act::End(Finish::Length)],
    ]);
    let server = Server::start(fake.clone());
    let body = json!({"prompt": "hi", "stream": true});
    drop(stream(server.address, "/completion", &body));
    eventually("cancelled in the prompt", || fake.cancellations() == 1);
    let mut answer = stream(server.address, "/completion", &body);
    assert!(answer.event().is_some());
    drop(answer);
    eventually("cancelled in decode", || fake.cancellations() == 2);
    // A whole answer that nobody waits for any more.
    let whole = json!({"prompt": "hi"}).to_string();
    let mut socket = super::http::connect(server.address);
    let head = super::http::head("POST", "/completion", &[], whole.len());
    std::io::Write::write_all(&mut socket, &head).unwrap();
    std::io::Write::write_all(&mut socket, whole.as_bytes()).unwrap();
    eventually("submitted", || fake.requests.lock().unwrap().len() == 3);
    drop(socket);
    eventually("cancelled without a stream", || fake.cancellations() == 3);
    let answer = super::http::post(server.address, "/completion", &json!({"prompt": "hi"}));
    assert_eq!(answer.json()["content"], "still here");
}

#[test]
fn a_slow_reader_holds_up_only_itself() {
    let many = vec![Act::Text("x"); 4000];
    let mut slow = many.clone();
    slow.push(Act::End(Finish::Length));
    let fake = Fake::new(vec![
        slow,
        vec![Act::Text("quick"), Act::End(Finish::Length)],
    ]);
    let server = Server::start(fake);
    let mut waiting = stream(
        server.address,
        "/completion",
        &json!({"prompt": "hi", "stream": true}),
    );
    let quick = super::http::post(server.address, "/completion", &json!({"prompt": "hi"}));
    assert_eq!(quick.json()["content"], "quick");
    assert_eq!(waiting.rest().len(), 4001);
}
