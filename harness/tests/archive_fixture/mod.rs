//! A small study written through the archive's own writer from synthetic responses.
#![allow(dead_code, reason = "each test file uses its own part of the fixture")]

pub mod forge;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use palindrome_harness::archive::{Archive, ArchiveWriter, SCHEMA, sha256_hex};
use palindrome_harness::derive::derive;
use palindrome_harness::host::{CheckoutFacts, HostFacts, HostSample};
use palindrome_harness::replay::{
    Arrival, PromptRecord, RawResponse, RequestHeader, RequestRecord,
};
use palindrome_harness::server::{
    FileFact, LaunchFacts, ProcessUsage, ServerKind, StopFacts, StopMode,
};
use palindrome_harness::session::SessionEnd;
use palindrome_harness::study::{Plan, PlannedSession, Role};

/// The study of `coins`: its seed gives exactly those.
pub fn study(coins: &[bool]) -> String {
    let quartets = coins.len() as u32;
    let seed = (0..1000)
        .find(|seed| palindrome_harness::study::coins(*seed, quartets) == coins)
        .unwrap();
    format!(
        "name = \"fixture\"\nquestion = \"Which fixture is faster?\"\nseed = {seed}\nquartets = {quartets}\nidentity = \"exact\"\n\
         [[arm]]\nname = \"A\"\nlabel = \"palindrome-engine\"\nkind = \"palindrome-engine\"\nmodel = \"m.gguf\"\n\
         [[arm]]\nname = \"B\"\nlabel = \"llama.cpp\"\nkind = \"llama-cpp\"\nmodel = \"m.gguf\"\n\
         [workload]\nbodies = [\"one.json\", \"two.json\"]\n"
    )
}

pub const BODIES: [(&str, &str); 2] = [
    (
        "one.json",
        r#"{"messages":[{"role":"user","content":"one"}]}"#,
    ),
    ("two.json", r#"{"messages":[]}"#),
];

/// Burn-in, then quartets of A and B: `true` is ABBA.
pub fn plan(coins: &[bool]) -> Plan {
    let mut sessions = vec![PlannedSession {
        index: 0,
        arm: "A".into(),
        role: Role::BurnIn,
        quartet: None,
        pair: None,
    }];
    for (quartet, coin) in coins.iter().enumerate() {
        let order = if *coin {
            ["A", "B", "B", "A"]
        } else {
            ["B", "A", "A", "B"]
        };
        for (at, arm) in order.into_iter().enumerate() {
            sessions.push(PlannedSession {
                index: sessions.len() as u32,
                arm: arm.into(),
                role: Role::Scored,
                quartet: Some(quartet as u32),
                pair: Some((quartet * 2 + at / 2) as u32),
            });
        }
    }
    Plan {
        schema: SCHEMA.into(),
        study: "fixture".into(),
        study_sha256: sha256_hex(study(coins).as_bytes()),
        seed: (0..1000)
            .find(|seed| palindrome_harness::study::coins(*seed, coins.len() as u32) == coins)
            .unwrap(),
        coins: coins.to_vec(),
        protocol: palindrome_harness::study::Protocol::Fresh,
        phases: vec![],
        arms: vec!["A".into(), "B".into()],
        warmups: vec![],
        bodies: BODIES
            .iter()
            .map(|(n, b)| ((*n).to_string(), sha256_hex(b.as_bytes())))
            .collect(),
        looks: None,
        sessions,
    }
}

pub fn host() -> HostFacts {
    HostFacts {
        schema: "1.0".into(),
        utc: "2026-11-30T07:00:00Z".into(),
        boot_id: Some("0000".into()),
        os: Some("Test OS 1".into()),
        kernel: Some("6.0.0".into()),
        arch: "x86_64".into(),
        cpu_model: Some("Test CPU".into()),
        cpu_flags: vec!["avx2".into()],
        logical_cpus: Some(2),
        physical_cores: Some(2),
        memory_bytes: Some(8 << 30),
        swap_bytes: Some(0),
        governor: None,
        clocksource: Some("tsc".into()),
        transparent_hugepage: Some("madvise".into()),
        virtualised: Some(true),
        harness_version: "0.1.0".into(),
        checkout: Some(CheckoutFacts {
            commit: "0123456789abcdef0123".into(),
            dirty: true,
        }),
        versions: BTreeMap::new(),
    }
}

pub fn launch(planned: &PlannedSession, start_ns: u64) -> LaunchFacts {
    let llama = planned.arm == "B";
    let build: &[(&str, &str)] = if llama {
        &[
            ("build", "wheel"),
            ("version", "b11434"),
            ("features", "SSE3, AVX"),
        ]
    } else {
        &[("version", "0.1.0")]
    };
    LaunchFacts {
        schema: "1.0".into(),
        arm: planned.arm.clone(),
        label: if llama {
            "llama.cpp".into()
        } else {
            "palindrome-engine".into()
        },
        kind: if llama {
            ServerKind::LlamaCpp
        } else {
            ServerKind::PalindromeEngine
        },
        command: vec![
            "server".into(),
            "--port".into(),
            "8080".into(),
            "<model>".into(),
        ],
        env: BTreeMap::new(),
        cwd: "/".into(),
        port: 8080,
        pid: 100 + planned.index,
        binary: FileFact {
            path: "server".into(),
            bytes: 3,
            sha256: sha256_hex(planned.arm.as_bytes()),
        },
        libraries: vec![],
        models: vec![FileFact {
            path: "model.gguf".into(),
            bytes: 3,
            sha256: sha256_hex(b"model"),
        }],
        build: build
            .iter()
            .map(|(k, v)| ((*k).to_string(), (*v).to_string()))
            .collect(),
        launched_ns: start_ns,
        ready_ns: start_ns + 250_000_000,
    }
}

/// A streamed answer of `tokens` tokens, one an event, `gap_ns` apart, the first after `first_ns`.
pub fn response(sent_ns: u64, first_ns: u64, gap_ns: u64, tokens: u64) -> RawResponse {
    let mut body = Vec::new();
    let mut arrivals = Vec::new();
    let mut push = |text: String, ns: u64, body: &mut Vec<u8>| {
        body.extend_from_slice(format!("data: {text}\n\n").as_bytes());
        arrivals.push(Arrival {
            ns,
            end: body.len() as u64,
        });
    };
    for i in 0..tokens {
        let text = format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"w{i} "}},"finish_reason":null}}],"tokens":[{}]}}"#,
            i + 1
        );
        push(text, sent_ns + first_ns + i * gap_ns, &mut body);
    }
    let last = sent_ns + first_ns + (tokens - 1) * gap_ns;
    let decode_ms = ((tokens - 1) * gap_ns) as f64 / 1e6;
    let prompt_ms = first_ns as f64 / 1e6;
    let end = format!(
        r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":40,"completion_tokens":{tokens}}},"timings":{{"cache_n":0,"prompt_n":40,"prompt_ms":{prompt_ms},"predicted_n":{tokens},"predicted_ms":{decode_ms}}}}}"#
    );
    push(end, last + 1_000_000, &mut body);
    push("[DONE]".into(), last + 1_100_000, &mut body);
    RawResponse {
        client_cpu_ns: None,
        sent_ns,
        done_ns: last + 1_200_000,
        status: Some(200),
        content_type: Some("text/event-stream".into()),
        arrivals,
        error: None,
        body,
    }
}

/// Answers of a server's template and tokeniser routes: 40 ids, as the fixture's answers count.
fn tokeniser(route: &str, _body: &[u8]) -> RawResponse {
    let body = match route {
        "/apply-template" => r#"{"prompt":"<user>one"}"#.to_string(),
        _ => format!(r#"{{"tokens":{:?}}}"#, (100..140).collect::<Vec<u32>>()),
    };
    RawResponse {
        client_cpu_ns: None,
        sent_ns: 0,
        done_ns: 1,
        status: Some(200),
        content_type: Some("application/json".into()),
        arrivals: vec![],
        error: None,
        body: body.into_bytes(),
    }
}

/// Writes one session; B takes twice A's time a token, and each session is a little slower than the
/// one before it (drift), with a fixed irregularity.
pub fn write_session(writer: &ArchiveWriter, planned: &PlannedSession) {
    let start = 1_000_000_000 + u64::from(planned.index) * 10_000_000_000;
    let session = writer.begin_session(planned).unwrap();
    let facts = launch(planned, start + 1_000_000);
    let mut log = session.log_file().unwrap();
    writeln!(log, "listening on 8080").unwrap();
    session.launch(&facts).unwrap();
    let slow = if planned.arm == "B" { 2 } else { 1 };
    let uneven = [0, 3, 1, 4, 2, 5, 3, 1, 2][planned.index as usize % 9];
    let gap = slow * 20_000_000 + u64::from(planned.index) * 100_000 + uneven * 50_000;
    let mut sent = facts.ready_ns + 50_000_000;
    for (i, (name, body)) in BODIES.iter().enumerate() {
        let raw = response(sent, slow * 90_000_000 + gap, gap, 5 + i as u64);
        let header = RequestHeader {
            index: i as u32,
            body: (*name).into(),
            body_sha256: sha256_hex(body.as_bytes()),
            scored: true,
            stream: format!("{i:03}"),
            ..RequestHeader::default()
        };
        let record = RequestRecord::assemble(header, &raw, facts.kind);
        assert_eq!(record.error, None);
        session.request(&record, &raw).unwrap();
        let sample = HostSample {
            ns: sent,
            cpu_busy: Some(0.5),
            load1: Some(1.0),
            ..HostSample::default()
        };
        session.host_sample(&sample).unwrap();
        sent = raw.done_ns + 5_000_000;
    }
    if facts.kind == ServerKind::LlamaCpp {
        let prompts: Vec<PromptRecord> = (0_u32..)
            .zip(BODIES)
            .map(|(i, (name, body))| PromptRecord::ask(i, name, body.as_bytes(), tokeniser))
            .collect();
        session.prompts(&prompts).unwrap();
    }
    let usage = ProcessUsage {
        peak_rss_bytes: Some(slow * (64 << 20)),
        minor_faults: Some(1000),
        major_faults: Some(0),
        user_ms: Some(900),
        system_ms: Some(50),
        read_bytes: None,
    };
    let stop = StopFacts {
        mode: StopMode::Terminated,
        exit_code: Some(0),
        signal: None,
        port_free: true,
        usage,
    };
    let end = SessionEnd {
        schema: "1.0".into(),
        started_ns: start,
        ended_ns: sent + 1,
        stop,
        error: None,
    };
    session.end(&end).unwrap();
    session.commit().unwrap();
}

pub fn workload() -> Vec<(String, Vec<u8>)> {
    BODIES
        .iter()
        .map(|(n, b)| ((*n).to_string(), b.as_bytes().to_vec()))
        .collect()
}

pub fn create(root: &Path, coins: &[bool]) -> ArchiveWriter {
    ArchiveWriter::create(
        root,
        study(coins).as_bytes(),
        &plan(coins),
        &host(),
        &workload(),
    )
    .unwrap()
}

/// A whole sealed archive below `root`.
pub fn sealed(root: &Path, coins: &[bool]) -> PathBuf {
    let writer = create(root, coins);
    for planned in &plan(coins).sessions {
        write_session(&writer, planned);
    }
    let figures = derive(&Archive::open(writer.path()).unwrap().facts().unwrap());
    writer.seal(&figures).unwrap()
}

/// Copies a folder with everything in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
