//! The real server with 16 requests at once: every answer is the one that the request gets alone.
#![allow(missing_docs, reason = "tests")]

mod support;

use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};
use support::http::{get, post, stream};
use support::{Model, Server, eventually};

const MODELS: [&str; 2] = ["gpt-oss-8x4", "llama-mixed"];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.gguf"))
}

/// Different lengths, samplings and reports; every third begins like the others of its kind.
fn body(i: u64) -> Value {
    let shared = (0..if i.is_multiple_of(3) { 30 } else { 0 }).map(|j| (j * 17 + 5) % 512);
    let own = (0..4 + i * 29 % 70).map(|j| (j * j * 31 + j * 7 + i * 101 + 3) % 512);
    json!({
        "prompt": shared.chain(own).collect::<Vec<u64>>(),
        "n_predict": 6 + i % 11,
        "temperature": ([0.0, 1.0, 1.4][i as usize % 3]),
        "top_k": ([0, 30][i as usize % 2]),
        "seed": i + 9,
        "n_probs": 3,
        "ignore_eos": true,
        "return_tokens": true,
        "cache_prompt": i % 4 != 2,
        "stream": i % 5 == 4,
    })
}

/// Tokens with their log-probabilities as they were written, and the hashes.
fn ask(server: &Server, body: &Value) -> Value {
    let events = if body["stream"] == true {
        stream(server.address, "/completion", body).rest()
    } else {
        let answer = post(server.address, "/completion", body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        vec![answer.json()]
    };
    let listed = |name: &str| -> Vec<Value> {
        let lists = events.iter().filter_map(|event| event[name].as_array());
        lists.flatten().cloned().collect()
    };
    let last = events.last().unwrap();
    assert_eq!(last["tokens_predicted"], body["n_predict"], "{last}");
    json!({
        "tokens": listed("tokens"),
        "probabilities": listed("completion_probabilities"),
        "hashes": last["timings"]["token_hashes"],
    })
}

#[test]
fn sixteen_at_once_get_the_answers_they_get_alone() {
    for name in MODELS {
        let path = golden(name);
        let alone: Vec<Value> = {
            let server = Server::start(&path, &["-np", "1"]);
            assert_eq!(get(server.address, "/props").json()["total_slots"], 1);
            (0..16).map(|i| ask(&server, &body(i))).collect()
        };
        assert!(
            alone
                .iter()
                .all(|a| !a["probabilities"].as_array().unwrap().is_empty())
        );
        let server = Server::start(&path, &["--parallel", "16"]);
        let slots = get(server.address, "/slots").json();
        assert_eq!(slots.as_array().unwrap().len(), 16);
        for round in 0..2 {
            let together: Vec<Value> = thread::scope(|scope| {
                let asking: Vec<_> = (0..16)
                    .map(|i| {
                        let server = &server;
                        if i % 6 == round {
                            // Someone comes, and leaves with the first token or before it.
                            let mut passer_by = body(i + 50);
                            passer_by["stream"] = json!(true);
                            passer_by["n_predict"] = json!(-1);
                            let mut passing = stream(server.address, "/completion", &passer_by);
                            if round == 0 {
                                passing.event();
                            }
                        }
                        scope.spawn(move || ask(server, &body(i)))
                    })
                    .collect();
                asking.into_iter().map(|a| a.join().unwrap()).collect()
            });
            for (i, (together, alone)) in together.iter().zip(&alone).enumerate() {
                assert_eq!(together, alone, "{name}: request {i} of round {round}");
            }
        }
        eventually("all slots are free again", || {
            let slots = get(server.address, "/slots").json();
            let free = |slot: &Value| slot["is_processing"] == false;
            slots.as_array().unwrap().iter().all(free)
        });
    }
}

#[test]
fn slots_show_what_they_work_on() {
    let model = Model::tiny();
    let server = Server::start(&model.path, &["--ctx", "4096", "--parallel", "3"]);
    let endless =
        json!({"prompt": "a b", "stream": true, "ignore_eos": true, "return_tokens": true});
    let mut streams: Vec<_> = (0..12)
        .map(|_| stream(server.address, "/completion", &endless))
        .collect();
    let mut ids: Vec<u64> = streams[..3]
        .iter_mut()
        .map(|running| {
            let event: Value = serde_json::from_str(&running.event().unwrap()).unwrap();
            event["id_slot"].as_u64().unwrap()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
    let value = |name: &str| -> u64 {
        let metrics = get(server.address, "/metrics").text();
        let mut lines = metrics.lines();
        let line = lines.find_map(|line| line.strip_prefix(&format!("palindrome_{name} ")));
        line.unwrap_or_else(|| panic!("{name} in {metrics}"))
            .parse()
            .unwrap()
    };
    assert_eq!(value("slots"), 3);
    // Others are waiting, so a request that has ended by now has made room for the next one.
    eventually(
        "three are worked on, and all others wait or have ended",
        || {
            let slots = get(server.address, "/slots").json();
            let works = |(id, slot): (usize, &Value)| {
                assert_eq!((&slot["id"], &slot["n_ctx"]), (&json!(id), &json!(4096)));
                slot["is_processing"] == true && slot["n_decoded"].as_u64().unwrap() > 0
            };
            let all_work = slots.as_array().unwrap().iter().enumerate().all(works);
            let before = value("requests_finished_total");
            let (running, waiting) = (value("requests_processing"), value("requests_deferred"));
            let undisturbed = before == value("requests_finished_total");
            all_work && undisturbed && running == 3 && waiting + before == 9
        },
    );
    // Whoever leaves makes room for those that wait.
    let mut last = streams.pop().unwrap();
    drop(streams);
    assert!(last.event().is_some());
    eventually("the others are gone", || {
        value("requests_finished_total") + value("requests_cancelled_total") == 11
    });
    assert!(value("requests_cancelled_total") > 0);
}
