//! The real thing, short: the bundled engine and a real llama.cpp on the shipped model.

use std::fs;

use crate::support::{Room, engine, llama_cpp, model};

#[test]
fn two_real_servers_one_quartet_one_audit() {
    let llama = llama_cpp();
    let room = Room::new();
    let body = |ask: &str| {
        serde_json::json!({
            "messages": [{"role": "user", "content": ask}],
            "stream": true, "stream_options": {"include_usage": true}, "return_tokens": true,
            "temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 1,
            "repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
            "cache_prompt": true, "max_tokens": 8,
        })
        .to_string()
    };
    room.write(
        "1.json",
        &body("Write a Python function that adds two numbers."),
    );
    room.write(
        "2.json",
        &body("Write a function `fib` that returns the n-th Fibonacci number."),
    );
    room.write(
        "study.toml",
        &format!(
            "name = \"short\"\nquartets = 1\nidentity = \"exact\"\n\
             [base]\nmodel = {model:?}\nthreads = 1\nctx = 1024\n\
             [[arm]]\nname = \"llama-cpp\"\nkind = \"llama-cpp\"\n\
             [[arm]]\nname = \"engine\"\nkind = \"palindrome-engine\"\nprogram = {engine:?}\n\
             [workload]\nbodies = [\"1.json\", \"2.json\"]\nexpect_cached = \"prefix\"\n\
             [guards]\nallow_other_servers = true\n",
            model = model(),
            engine = engine(),
        ),
    );
    let ran = room.run(&["run", "study.toml", "--json"]).expect(0);
    let line: serde_json::Value = serde_json::from_str(&ran.out).expect("one JSON object");
    let archive = line["archive"].as_str().expect("a path").to_owned();
    if !llama.built_for_host {
        let warnings = line["verdict"]["warnings"].to_string();
        assert!(warnings.contains("not built for this host"), "{warnings}");
    }
    room.run(&["audit", &archive]).expect(0);

    let session = fs::read_dir(room.path(&archive).join("sessions"))
        .expect("sessions")
        .next()
        .expect("one")
        .expect("readable");
    let log = session.path().join("server.log");
    let mut bytes = fs::read(&log).expect("the server's log");
    bytes.push(b' ');
    fs::write(&log, bytes).expect("writable");
    let caught = room.run(&["audit", &archive]).expect(104);
    assert!(caught.out.contains("server.log"), "{}", caught.out);
}
