//! The real thing, short: the bundled engine and a real llama.cpp on the shipped model.

use std::fs;
use std::path::Path;

use crate::support::{Room, engine, llama_cpp, model};

/// Both servers show that they ran as the study asks, on the CPU, from the model that was hashed.
fn settings_were_read_back(figures: &Path) {
    let figures = fs::read(figures).expect("figures.json");
    let figures: serde_json::Value = serde_json::from_slice(&figures).expect("JSON");
    let sessions = figures["settings"].as_array().expect("every session");
    assert_eq!(sessions.len(), 5);
    for session in sessions {
        let all = session["settings"].as_array().expect("a list");
        let at = |name: &str| {
            let found = all.iter().find(|s| s["name"] == name);
            found.unwrap_or_else(|| panic!("{name} is not in {session}"))
        };
        for (name, value) in [("threads", 1), ("ctx", 1024)] {
            let setting = at(name);
            assert_eq!(
                (&setting["found"], &setting["verdict"]),
                (&value.into(), &"ok".into())
            );
        }
        assert_eq!(at("backend")["found"], "cpu");
        assert_eq!(at("gpu_layers")["found"], 0);
        assert_eq!(at("mmap")["found"], true);
        assert_eq!(at("model_path")["verdict"], "ok");
        let features = at("cpu_features")["found"].to_string();
        assert!(features.contains(if cfg!(target_arch = "x86_64") {
            "AVX"
        } else {
            "NEON"
        }));
    }
}

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
    let last = ran.out.lines().last().expect("events");
    let line: serde_json::Value = serde_json::from_str(last).expect("one JSON object a line");
    assert_eq!(line["event"], "study-sealed");
    let archive = line["archive"].as_str().expect("a path").to_owned();
    if !llama.built_for_host {
        let warnings = line["verdict"]["warnings"].to_string();
        assert!(warnings.contains("not built for this host"), "{warnings}");
    }
    room.run(&["audit", &archive]).expect(0);
    settings_were_read_back(&room.path(&archive).join("figures.json"));

    // The engine read a store in its model's place: the evidence names it by hash.
    let with_store = fs::read_dir(room.path(&archive).join("sessions"))
        .expect("sessions")
        .filter(|session| {
            let launch = session
                .as_ref()
                .expect("readable")
                .path()
                .join("launch.json");
            let launch = fs::read(launch).expect("launch.json");
            let launch: serde_json::Value = serde_json::from_slice(&launch).expect("JSON");
            let mapped = launch["libraries"].as_array().expect("a list").iter();
            let store = |file: &serde_json::Value| {
                let path = file["path"]
                    .as_str()
                    .is_some_and(|path| Path::new(path).extension().is_some_and(|e| e == "store"));
                path && file["sha256"].as_str().is_some_and(|hash| hash.len() == 64)
            };
            mapped.filter(|file| store(file)).count() == 1
        })
        .count();
    assert_eq!(with_store, 2, "both sessions of the engine");

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
