//! Whole answers of every route.

use serde_json::{Value, json};

use super::fake::{Act, CALL, CHANNEL, CONSTRAIN, END, Fake, MESSAGE, RETURN, START, Server};
use super::http::{get, post};
use super::redact::redact;
use crate::scheduler::Finish;

fn pretty(value: Value) -> String {
    serde_json::to_string_pretty(&redact(value)).unwrap()
}

#[test]
fn completion_in_llama_servers_shape() {
    let fake = Fake::new(vec![vec![
        Act::Text("ok\n"),
        Act::Token(RETURN),
        Act::End(Finish::Stop),
    ]]);
    let server = Server::start(fake.clone());
    let body = json!({
        "prompt": "hi<|end|>", "n_predict": 9, "temperature": 0, "seed": 7, "return_tokens": true,
        "n_probs": 1, "repeat_penalty": 1.0, "typical_p": 1, "samplers": ["top_k"], "id_slot": -1,
    });
    let answer = post(server.address, "/completion", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(
        answer["completion_probabilities"].as_array().unwrap().len(),
        4
    );
    let mut shown = answer;
    shown["completion_probabilities"]
        .as_array_mut()
        .unwrap()
        .truncate(1);
    insta::assert_snapshot!(pretty(shown));
    let request = fake.last_request();
    assert_eq!(request.prompt, [104, 105, END]);
    assert_eq!(request.max_tokens, Some(9));
    assert_eq!(request.sampling.seed, Some(7));
    assert_eq!(request.logprobs, Some(1));
    assert!(request.stop_tokens.contains(&RETURN) && !request.stop_tokens.contains(&END));
}

#[test]
fn prompts_are_text_ids_or_both_and_eos_can_be_ignored() {
    let script = vec![Act::Text("x"), Act::End(Finish::Length)];
    let fake = Fake::new(vec![script.clone(), script]);
    let server = Server::start(fake.clone());
    let body = json!({"prompt": [97, "b<|end|>", 99], "max_tokens": 1, "ignore_eos": true});
    let answer = post(server.address, "/completion", &body).json();
    assert_eq!(answer["stop_type"], "limit");
    assert_eq!(answer["tokens"], json!([]));
    let request = fake.last_request();
    assert_eq!(request.prompt, [97, 98, END, 99]);
    assert_eq!(request.stop_tokens, Vec::<u32>::new());
    assert!(
        request
            .sampling
            .logit_bias
            .contains(&(RETURN, f32::NEG_INFINITY))
    );

    let body =
        json!({"prompt": "a", "max_tokens": -1, "logit_bias": {"5": -2.5}, "cache_prompt": false});
    let answer = post(server.address, "/completion", &body).json();
    let request = fake.last_request();
    assert_eq!(request.max_tokens, None);
    assert_eq!(request.sampling.logit_bias, [(5, -2.5)]);
    assert!(!request.cache_prompt);
    assert_eq!(
        answer["timings"]["seed"],
        json!(request.sampling.seed.unwrap())
    );
    assert_eq!(
        answer["generation_settings"]["seed"],
        answer["timings"]["seed"]
    );
}

#[test]
fn completions_in_openais_shape() {
    let script = vec![
        Act::Text("h\u{e9}y"),
        Act::Token(RETURN),
        Act::End(Finish::Stop),
    ];
    let server = Server::start(Fake::new(vec![script]));
    let body = json!({"model": "any", "prompt": "hi", "max_tokens": 5, "logprobs": 2, "seed": 2});
    let answer = post(server.address, "/v1/completions", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    insta::assert_snapshot!(pretty(answer.json()));
}

#[test]
fn chat_reads_harmony() {
    let script = vec![
        Act::Token(CHANNEL),
        Act::Text("analysis"),
        Act::Token(MESSAGE),
        Act::Text("Hm."),
        Act::Token(END),
        Act::Token(START),
        Act::Text("assistant"),
        Act::Token(CHANNEL),
        Act::Text("final"),
        Act::Token(MESSAGE),
        Act::Text("Hello."),
        Act::Token(RETURN),
        Act::End(Finish::Stop),
    ];
    let fake = Fake::harmony(vec![script]);
    fake.cache_n.store(4, std::sync::atomic::Ordering::SeqCst);
    let server = Server::start(fake.clone());
    let body = json!({
        "model": "x", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "return_tokens": true, "seed": 1, "user": "me",
    });
    let answer = post(server.address, "/v1/chat/completions", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut answer = answer.json();
    assert_eq!(answer["tokens"].as_array().unwrap().len(), 38);
    answer["tokens"].as_array_mut().unwrap().truncate(2);
    insta::assert_snapshot!(pretty(answer));
    let request = fake.last_request();
    assert_eq!(request.prompt[..5], [START, 117, 115, 101, 114]);
    assert_eq!(request.prompt.last(), Some(&u32::from(b't')));
}

#[test]
fn chat_reads_tool_calls() {
    let script = vec![
        Act::Token(CHANNEL),
        Act::Text("commentary to=functions.add "),
        Act::Token(CONSTRAIN),
        Act::Text("json"),
        Act::Token(MESSAGE),
        Act::Text("{\"a\": 1}"),
        Act::Token(CALL),
        Act::End(Finish::Stop),
    ];
    let fake = Fake::harmony(vec![script.clone(), script]);
    let server = Server::start(fake.clone());
    let tool =
        json!({"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}});
    let mut body = json!({
        "messages": [{"role": "user", "content": "hi"}], "seed": 1, "tools": [tool],
        "tool_choice": "auto", "parallel_tool_calls": false,
    });
    let answer = post(server.address, "/v1/chat/completions", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["type"], "function");
    assert_eq!(
        call["function"],
        json!({"name": "add", "arguments": "{\"a\": 1}"})
    );
    assert!(call.get("index").is_none() && call["id"].is_string());
    let with_tools = fake.last_request().prompt.len();
    body["tool_choice"] = json!("none");
    post(server.address, "/v1/chat/completions", &body);
    assert!(fake.last_request().prompt.len() < with_tools);
}

#[test]
fn plain_templates_give_plain_content_and_logprobs() {
    let script = vec![Act::Text("a"), Act::Token(RETURN), Act::End(Finish::Stop)];
    let fake = Fake::with_template(vec![script], "{{ messages[0].content }}");
    let server = Server::start(fake);
    let body = json!({
        "messages": [{"role": "user", "content": "hi"}], "logprobs": true, "top_logprobs": 2,
    });
    let answer = post(server.address, "/v1/chat/completions", &body).json();
    let choice = &answer["choices"][0];
    assert_eq!(
        choice["message"],
        json!({"role": "assistant", "content": "a"})
    );
    assert_eq!(
        choice["logprobs"]["content"][0],
        json!({
            "id": 97, "token": "a", "bytes": [97], "logprob": -0.25,
            "top_logprobs": [
                {"id": 97, "token": "a", "bytes": [97], "logprob": -0.25},
                {"id": 120, "token": "x", "bytes": [120], "logprob": -1.5},
            ],
        })
    );
}

#[test]
fn a_stop_string_across_tokens_ends_the_work() {
    let script = vec![Act::Text("one</e"), Act::Text("nd>two"), Act::Gate];
    let fake = Fake::new(vec![script]);
    let server = Server::start(fake.clone());
    let body = json!({"prompt": "p", "stop": ["</end>", "never"], "seed": 3});
    let answer = post(server.address, "/completion", &body).json();
    assert_eq!(answer["content"], "one");
    assert_eq!(answer["stop_type"], "word");
    assert_eq!(answer["stopping_word"], "</end>");
    assert_eq!(answer["tokens_predicted"], 9);
    assert_eq!(answer["timings"]["predicted_n"], 9);
    assert_eq!(answer["timings"]["prompt_n"], 1);
    assert!(answer["timings"].get("faults").is_none());
    assert_eq!(
        answer["timings"]["token_hashes"]["prompt"],
        "d3fe97979d0fbe3bf464e5001637443d72b890242a801cc221b1c8a169a69761"
    );
    assert_eq!(fake.cancellations(), 1);
}

#[test]
fn tokens_templates_and_facts() {
    let fake = Fake::harmony(vec![]);
    let server = Server::start(fake);
    let at = server.address;
    let tokens = |body: Value| post(at, "/tokenize", &body).json()["tokens"].clone();
    assert_eq!(
        tokens(json!({"content": "é<|end|>"})),
        json!([195, 169, END])
    );
    assert_eq!(
        tokens(json!({"content": "<|", "add_special": true})),
        json!([60, 124])
    );
    assert_eq!(
        tokens(json!({"content": "<|end|>", "parse_special": false}))
            .as_array()
            .unwrap()
            .len(),
        7
    );
    assert_eq!(
        tokens(json!({"content": "aé", "with_pieces": true})),
        json!([{"id": 97, "piece": "a"}, {"id": 195, "piece": [195]}, {"id": 169, "piece": [169]}])
    );
    let text = post(at, "/detokenize", &json!({"tokens": [104, 105, 195, 169]})).json();
    assert_eq!(text, json!({"content": "hié"}));
    let body = json!({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3});
    let prompt = post(at, "/apply-template", &body).json();
    assert_eq!(
        prompt,
        json!({"prompt": "<|start|>user<|message|>hi<|end|><|start|>assistant"})
    );
    for path in ["/health", "/v1/health"] {
        assert_eq!(get(at, path).json(), json!({"status": "ok"}));
    }
    insta::assert_snapshot!(redact(get(at, "/v1/models").json()).to_string(), @r#"{"object":"list","data":[{"id":"[id]","object":"model","created":"[created]","owned_by":"palindrome","meta":{"architecture":"gpt-oss","n_vocab":263,"n_ctx":512}}]}"#);
    assert_eq!(get(at, "/models").json()["data"][0]["id"], "fake");
    let props = get(at, "/props").json();
    assert_eq!(props["isa"], "scalar");
    assert_eq!(props["activations"], "int16");
    assert_eq!(props["kv_type"], "f16");
    assert_eq!(props["total_slots"], 2);
    assert_eq!(props["default_generation_settings"]["n_ctx"], 512);
    assert!(
        props["chat_template"]
            .as_str()
            .unwrap()
            .contains("<|channel|>")
    );
    assert_eq!(
        get(at, "/slots").json(),
        json!([
            {
                "id": 0, "n_ctx": 512, "is_processing": true, "n_prompt_tokens": 100,
                "n_prompt_tokens_cache": 30, "n_prompt_tokens_processed": 70, "n_decoded": 5,
            },
            {"id": 1, "n_ctx": 512, "is_processing": false},
        ])
    );
    let metrics = get(at, "/metrics");
    assert_eq!(
        metrics.header("content-type"),
        Some("text/plain; version=0.0.4")
    );
    assert!(
        metrics
            .text()
            .contains("\npalindrome_requests_deferred 3\n")
    );
}
