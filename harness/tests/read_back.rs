//! Settings are read back and compared with what a study expects, and noise and energy are told.

mod archive_fixture;
mod common;

use archive_fixture::sealed;
use common::Bench;
use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::audit::audit;
use palindrome_harness::cli::Exit;
use palindrome_harness::derive::{
    Asked, Figures, Label, NoiseKind, Setting, Unit, Verdicted, derive, settings,
};
use palindrome_harness::host::{
    EnergyCounter, HostSample, OtherProcess, OtherProcesses, PowerReading, ProcessFacts,
};
use palindrome_harness::report::{verdict_table, write};
use palindrome_harness::server::{ClockPair, Readback, RouteAnswer};
use serde_json::json;

/// A mock that says in `/props` and in its log what the bundled engine and llama.cpp would.
fn scripted(threads: u32, log: &[&str]) -> String {
    format!(
        "log = {log:?}\nprops = '''{{\"threads\": {threads}, \"n_ctx\": 4096, \"isa\": \"scalar\", \"total_slots\": 1}}'''\n\
         [[reply]]\nprompt_ms = 1\ntokens = 3\ngap_ms = 1\n"
    )
}

fn run_and_seal(bench: &Bench) -> (Archive, Figures) {
    let writer = bench.run().unwrap();
    let figures = derive(&Archive::open(writer.path()).unwrap().facts().unwrap());
    let path = writer.seal(&figures).unwrap();
    (Archive::open(&path).unwrap(), figures)
}

fn setting<'a>(figures: &'a Figures, session: usize, name: &str) -> &'a Setting {
    let found = figures.settings()[session].get(name);
    found.unwrap_or_else(|| panic!("{name} is not among the settings"))
}

#[test]
fn a_study_shows_what_its_servers_really_did_and_an_audit_finds_the_same() {
    let log = ["load_tensors: offloaded 0/13 layers to GPU"];
    let scripts = [scripted(2, &log), scripted(4, &log)];
    let head = "burn_in = false\n[base.expect]\nthreads = 2\nctx = 4096\ngpu_layers = 0\nubatch = 512\nbackend = \"CPU\"";
    let bench = Bench::new(head, "", &[&scripts[0], &scripts[1]]);
    let (archive, figures) = run_and_seal(&bench);
    assert_eq!(figures.settings().len(), 4);
    let b = figures
        .settings()
        .iter()
        .position(|s| s.arm == "B")
        .unwrap();
    let a = figures
        .settings()
        .iter()
        .position(|s| s.arm == "A")
        .unwrap();
    let verdict = |at, name| setting(&figures, at, name).verdict;
    assert_eq!(verdict(a, "threads"), Some(Verdicted::Ok));
    assert_eq!(verdict(b, "threads"), Some(Verdicted::Differs));
    assert_eq!(verdict(a, "ctx"), Some(Verdicted::Ok));
    let layers = setting(&figures, a, "gpu_layers");
    assert_eq!(layers.verdict, Some(Verdicted::Ok));
    let source = "server.log: load_tensors: offloaded 0/13 layers to GPU";
    assert_eq!(layers.source.as_deref(), Some(source));
    let missing = setting(&figures, a, "ubatch");
    assert_eq!(
        (missing.verdict, &missing.found),
        (Some(Verdicted::NotShown), &None)
    );
    // No device file is open, so it computes on the CPU; where it may run is a fact of its process.
    assert_eq!(verdict(a, "backend"), Some(Verdicted::Ok));
    let cpus = setting(&figures, a, "cpus");
    assert!(cpus.found.is_some() && cpus.verdict.is_none());

    let outcome = audit(archive.path()).unwrap();
    assert!(outcome.passed(), "{outcome}");
    let first = &figures.verdict().warnings[0];
    let ran = figures.settings().iter().find(|s| s.arm == "A").unwrap();
    assert_eq!(ran.get("threads").unwrap().found, Some(2.into()));
    let of_b = figures
        .verdict()
        .warnings
        .iter()
        .find(|w| w.starts_with("B: threads"));
    assert_eq!(
        of_b.unwrap(),
        "B: threads is 4, expected 2 [/props threads]."
    );
    assert!(
        first.starts_with("A"),
        "what A leaves unused comes first: {first}"
    );

    let written = write(&archive, &bench.folder.path().join("reports")).unwrap();
    let page = std::fs::read_to_string(written.markdown).unwrap();
    let at = |text: &str| {
        page.find(text)
            .unwrap_or_else(|| panic!("{text} is not in\n{page}"))
    };
    assert!(at("B: threads is 4, expected 2") < at("## Result"));
    assert!(at("## Settings, read back") < at("## Where and when"));
    assert!(at("## Noise, by the sessions") > at("## Sessions in the order"));
    let table = verdict_table(&figures);
    assert!(table.contains("settings  B: "), "{table}");
    assert!(
        table.contains(", differ: threads, not shown: ubatch"),
        "{table}"
    );
}

#[test]
fn a_changed_answer_of_a_server_is_a_finding_even_if_every_hash_is_made_again() {
    let script = scripted(2, &[]);
    let bench = Bench::new("burn_in = false", "", &[&script, &script]);
    let (archive, _) = run_and_seal(&bench);
    let session = std::fs::read_dir(archive.path().join("sessions")).unwrap();
    let session = session.flatten().next().unwrap().file_name();
    let file = format!("sessions/{}/readback.json", session.to_string_lossy());
    archive_fixture::forge::edit(archive.path(), &file, |text| {
        text.replacen("\\\"threads\\\":2", "\\\"threads\\\":8", 1)
    });
    archive_fixture::forge::reseal(archive.path());
    let outcome = audit(archive.path()).unwrap();
    let found: Vec<String> = outcome.mismatches.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|m| m.contains("settings")), "{found:?}");
}

#[test]
fn a_strict_study_fails_at_the_first_session_that_is_not_as_expected() {
    let right = scripted(2, &[]);
    let wrong = scripted(1, &[]);
    // The mock is as slow as its script says: which instructions it uses is not the question here.
    let right = right.replace("scalar", "other");
    let wrong = wrong.replace("scalar", "other");
    let head = "strict = true\nburn_in = false\n[base.expect]\nthreads = 2";
    let good = Bench::new(head, "", &[&right, &right]);
    assert!(good.run().is_ok());
    let bad = Bench::new(head, "", &[&right, &wrong]);
    let error = bad.fail();
    assert_eq!(error.exit(), Exit::Server);
    let said = error.to_string();
    assert!(
        said.contains("the study is strict and the server of arm \"B\" is not as it should be: threads is 1, expected 2 [/props threads]"),
        "{said}"
    );
    assert!(error.resumable().is_some());
    let head = "strict = true\nburn_in = false\n[base.expect]\nbatch = 64";
    let unseen = Bench::new(head, "", &[&right, &right]).fail().to_string();
    assert!(
        unseen.contains("batch is not shown by this server, expected 64"),
        "{unseen}"
    );
    let lenient = Bench::new(&head.replace("true", "false"), "", &[&right, &right]);
    assert!(lenient.run().is_ok());
}

#[test]
fn a_device_or_instructions_that_nobody_asked_about_are_named_first_and_break_a_strict_study() {
    let script = scripted(2, &["load_tensors: offloaded 0/13 layers to GPU"]);
    let bench = Bench::new("burn_in = false", "", &[&script, &script]);
    let writer = bench.run().unwrap();
    let mut facts = Archive::open(writer.path()).unwrap().facts().unwrap();
    facts.host.cpu_flags = ["avx", "avx2", "fma", "f16c"].map(String::from).into();
    for session in facts.sessions.iter_mut().filter(|s| s.planned.arm == "A") {
        session
            .launch
            .command
            .extend(["-ngl", "99"].map(String::from));
    }
    let warnings = derive(&facts).verdict().warnings.clone();
    assert!(
        warnings[0]
            .starts_with("A ran on the CPU although its command asks for a device (-ngl 99) ["),
        "{warnings:?}"
    );
    assert_eq!(
        warnings[1],
        "A ran without instructions that this host has: AVX, AVX2, FMA, F16C [/props isa]."
    );
    let strict = Bench::new("strict = true\nburn_in = false", "", &[&script, &script]);
    if cfg!(target_arch = "x86_64")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|c| c.contains(" avx2 "))
    {
        let said = strict.fail().to_string();
        assert!(
            said.contains("ran without instructions that this host has"),
            "{said}"
        );
    }
    // Another device than the other arm's, by the log of one of them.
    for session in facts.sessions.iter_mut().filter(|s| s.planned.arm == "B") {
        let readback = session.readback.as_mut().unwrap();
        readback
            .log
            .push_str("load_tensors:        CUDA0 model buffer size =  1234.00 MiB\n");
    }
    let figures = derive(&facts);
    let said = &figures.verdict().warnings;
    let across = "The arms did not run on the same kind of device: A on cpu, B on cuda.";
    assert!(said.iter().any(|w| w == across), "{said:?}");
    // One session of an arm set otherwise than the rest of it.
    let b = facts
        .sessions
        .iter_mut()
        .rfind(|s| s.planned.arm == "B")
        .unwrap();
    b.readback.as_mut().unwrap().routes[0].body = Some("{\"threads\": 1}".into());
    let said = derive(&facts).verdict().warnings.join("\n");
    assert!(
        said.contains("B was not set alike in all sessions: threads is 1 in "),
        "{said}"
    );
}

/// What a llama.cpp server printed at its usual verbosity, and at `-lv 5`.
const QUIET_LOG: &str = include_str!("captured/llama-cpp.log");
const VERBOSE_LOG: &str = include_str!("captured/llama-cpp-verbose.log");
const PROPS: &str = include_str!("captured/llama-cpp-props.json");

fn readback_of(log: &str, props: &str) -> Readback {
    let answer = |path: &str, body: &str| RouteAnswer {
        path: path.into(),
        status: Some(200),
        body: Some(body.into()),
        error: None,
    };
    Readback {
        schema: "1.0".into(),
        clock: ClockPair {
            monotonic_ns: 0,
            unix_ms: 0,
        },
        routes: vec![answer("/props", props)],
        ready: ProcessFacts::default(),
        end: ProcessFacts::default(),
        log: log.into(),
    }
}

/// Found values by name, as JSON; what is not there is not shown.
fn found(log: &str, props: &str) -> serde_json::Value {
    let arm_b = &archive_fixture::plan(&[true]).sessions[2];
    let mut launch = archive_fixture::launch(arm_b, 0);
    launch.build.remove("features");
    let all = settings(&Asked::default(), &launch, &readback_of(log, props));
    let pairs = all
        .iter()
        .filter_map(|s| Some((s.name.clone(), s.found.clone()?)));
    serde_json::Value::Object(pairs.collect())
}

#[test]
fn a_real_log_and_its_props_say_what_the_server_did() {
    let verbose = found(VERBOSE_LOG, "");
    for (name, value) in [
        ("backend", json!("cpu")),
        ("ctx", json!(2048)),
        ("slots", json!(1)),
        ("threads", json!(1)),
        ("threads_batch", json!(1)),
        ("batch", json!(256)),
        ("ubatch", json!(128)),
        ("flash_attention", json!(true)),
        ("kv_type", json!("f16")),
        (
            "cpu_features",
            json!([
                "SSE3",
                "SSSE3",
                "AVX",
                "AVX2",
                "F16C",
                "FMA",
                "BMI2",
                "LLAMAFILE",
                "OPENMP",
                "REPACK"
            ]),
        ),
    ] {
        assert_eq!(verbose[name], value, "{name}");
    }
    let quiet = found(QUIET_LOG, PROPS);
    assert_eq!(
        (&quiet["threads"], &quiet["ctx"]),
        (&json!(2), &json!(4096))
    );
    assert_eq!(quiet["version"], json!("b0-unknown"));
    assert_eq!(quiet["model_path"], json!("/models/palindrome-small.gguf"));
    for unseen in [
        "batch",
        "ubatch",
        "flash_attention",
        "kv_type",
        "cpu_features",
        "backend",
        "gpu_layers",
    ] {
        assert_eq!(quiet[unseen], serde_json::Value::Null, "{unseen}");
    }
}

#[test]
fn the_bundled_engine_says_the_same_in_props_and_in_its_log() {
    let hash = "b4cd4f0d1e2619375c4936ef5f1d9313647c031463d7d9ce6142db1eecd83717";
    let log = format!(
        "listening on http://127.0.0.1:39225\n\
         reading gpt-oss-12.gguf (sha256 {hash}) from its store /stores/gpt-oss-12-fa652db2.store\n\
         loaded synthetic gpt-oss (gpt-oss, context 4096, 4 at once) in 0.64 s; 2 threads, isa avx2, activations int8, K/V f16\n"
    );
    let arm_a = &archive_fixture::plan(&[true]).sessions[1];
    let launch = archive_fixture::launch(arm_a, 0);
    let found = |log: &str, props: &str, name: &str| {
        let all = settings(&Asked::default(), &launch, &readback_of(log, props));
        all.into_iter()
            .find(|s| s.name == name)
            .and_then(|s| s.found)
    };
    let props =
        r#"{"threads": 2, "n_ctx": 4096, "isa": "avx2", "total_slots": 4, "kv_type": "f16"}"#;
    for (name, value) in [
        ("threads", json!(2)),
        ("ctx", json!(4096)),
        ("cpu_features", json!(["AVX2", "FMA", "F16C"])),
    ] {
        assert_eq!(
            found(&log, "", name),
            Some(value.clone()),
            "{name} by the log"
        );
        assert_eq!(found("", props, name), Some(value), "{name} by /props");
    }
    assert_eq!(found(&log, "", "model_sha256"), Some(json!(hash)));
    assert_eq!(found("", props, "kv_type"), Some(json!("f16")));
    assert_eq!(found("", props, "batch"), None);
}

#[test]
fn layers_on_a_device_are_those_of_the_last_load() {
    let log = "load_tensors: loading model tensors, this can take a while... (load_mode = none)\n\
               load_tensors: offloaded 25/25 layers to GPU\n\
               load_tensors:        CUDA0 model buffer size =     0.00 MiB\n\
               load_tensors: loading model tensors, this can take a while... (load_mode = mmap)\n\
               load_tensors: offloading 12 repeating layers to GPU\n\
               load_tensors: offloaded 12/25 layers to GPU\n\
               load_tensors:   CPU_Mapped model buffer size =  6000.50 MiB\n\
               load_tensors:    CUDA_Host model buffer size =   500.00 MiB\n\
               load_tensors:        CUDA0 model buffer size =  5000.25 MiB\n\
               load_tensors:        CUDA1 model buffer size =  1000.00 MiB\n\
               llama_context: flash_attn            = disabled\n";
    let found = found(log, "");
    assert_eq!(
        (&found["gpu_layers"], &found["model_layers"]),
        (&json!(12), &json!(25))
    );
    assert_eq!(found["backend"], json!("cuda"));
    assert_eq!(found["device_model_mib"], json!(6000.25));
    assert_eq!(found["flash_attention"], json!(false));
}

/// The fixture's facts as if its servers had been read back, with samples each half second around
/// the requests of each session.
fn facts() -> (tempfile::TempDir, Facts) {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true, false]);
    let mut facts = Archive::open(&path).unwrap().facts().unwrap();
    for session in &mut facts.sessions {
        let from = session.requests[0].sent_ns;
        let mut readback = readback_of("", "");
        readback.clock = ClockPair {
            monotonic_ns: from,
            unix_ms: (14 * 60 + 3) * 60_000,
        };
        session.readback = Some(readback);
        session.samples = (0..12).map(|i| sample(from, i)).collect();
    }
    (root, facts)
}

fn sample(from: u64, i: u64) -> HostSample {
    HostSample {
        ns: from + i * 500_000_000 - 100_000_000,
        cpu_busy: Some(0.9),
        load1: Some(1.0),
        available_bytes: Some(4 << 30),
        cpu_mhz: Some(3000.0),
        cpu_steal: Some(0.0),
        swap_in_bytes: Some(0),
        swap_out_bytes: Some(0),
        thermal_throttles: Some(7),
        cgroup_throttled_ns: Some(5),
        ..HostSample::default()
    }
}

#[test]
fn a_quiet_machine_has_no_noise() {
    let (_root, facts) = facts();
    let figures = derive(&facts);
    assert_eq!(figures.noise(), []);
    assert!(
        !figures
            .verdict()
            .warnings
            .iter()
            .any(|w| w.starts_with("Noise"))
    );
}

#[test]
fn every_source_of_noise_is_named_with_its_session_and_time() {
    let (_root, mut facts) = facts();
    let from = facts.sessions[3].requests[0].sent_ns;
    let last = facts.sessions[3]
        .requests
        .iter()
        .map(|r| r.done_ns)
        .max()
        .unwrap();
    let session = &mut facts.sessions[3];
    session.samples = (0..40)
        .map(|i| {
            let mut sample = sample(from, 0);
            sample.ns = from - 100_000_000 + i * (last - from + 100_000_000) / 39;
            sample
        })
        .collect();
    session.end.stop.usage.major_faults = Some(4000);
    let ends = session.samples.len() - 1;
    for (i, sample) in session.samples.iter_mut().enumerate() {
        sample.cpu_steal = Some(0.05);
        sample.cpu_mhz = Some(if i < 20 { 3000.0 } else { 2000.0 });
    }
    let middle = &mut session.samples[ends / 2];
    middle.available_bytes = Some(100 << 20);
    middle.load1 = Some(5.0);
    let end = &mut session.samples[ends];
    end.swap_in_bytes = Some(3 << 20);
    end.thermal_throttles = Some(9);
    end.cgroup_throttled_ns = Some(2_000_000_005);
    end.others = Some(OtherProcesses {
        since_ns: end.ns - 1_000_000_000,
        cpu_ms: 990,
        most: vec![
            OtherProcess {
                pid: 77,
                name: "rustc".into(),
                cpu_ms: 950,
            },
            OtherProcess {
                pid: 78,
                name: "idle".into(),
                cpu_ms: 30,
            },
        ],
    });
    let name = session.name();
    let figures = derive(&facts);
    let found: Vec<NoiseKind> = figures.noise().iter().map(|n| n.kind).collect();
    assert_eq!(
        found,
        [
            NoiseKind::OtherProcess,
            NoiseKind::Memory,
            NoiseKind::MajorFaults,
            NoiseKind::Load,
            NoiseKind::Steal,
            NoiseKind::Swap,
            NoiseKind::Thermal,
            NoiseKind::HeldBack,
            NoiseKind::Frequency,
        ],
        "{:?}",
        figures.noise()
    );
    assert!(
        figures
            .noise()
            .iter()
            .all(|n| n.session == name && n.scored)
    );
    let words: Vec<&str> = figures.noise().iter().map(|n| n.words.as_str()).collect();
    assert_eq!(
        words[0],
        "process rustc (pid 77) used 0.9 s of CPU time, at most 0.95 of a core"
    );
    assert_eq!(words[1], "104 MB of memory were available, below 429");
    assert_eq!(
        words[2],
        "4000 pages of the server came from disk (major faults), and its arm's other sessions had none, by their median"
    );
    assert_eq!(words[8], "the CPU's frequency fell from 3000 to 2000 MHz");
    assert!(
        figures.noise()[1]
            .at
            .as_deref()
            .unwrap()
            .starts_with("14:03:0")
    );
    let warning = figures
        .verdict()
        .warnings
        .iter()
        .find(|w| w.starts_with("Noise"));
    let warning = warning.unwrap();
    assert!(
        warning.starts_with("Noise touched 1 scored session(s). "),
        "{warning}"
    );
    assert!(
        warning.ends_with("; and 6 more, listed with the sessions."),
        "{warning}"
    );
    assert!(verdict_table(&figures).contains(&format!("noise     {name}: ")));
    // The study's own guard says what is too little memory.
    let text = String::from_utf8(facts.study_toml.clone()).unwrap();
    facts.study_toml = format!("{text}[guards]\nmin_free_ram_mb = 50\n").into_bytes();
    let kinds: Vec<NoiseKind> = derive(&facts).noise().iter().map(|n| n.kind).collect();
    assert!(!kinds.contains(&NoiseKind::Memory));
}

#[test]
fn energy_is_counted_over_the_requests_and_wraps() {
    let (_root, mut facts) = facts();
    let name = facts.sessions[1].name();
    let session = &mut facts.sessions[1];
    let last = session.requests.iter().map(|r| r.done_ns).max().unwrap();
    let before = session.samples.iter().filter(|s| s.ns < last).count();
    for (i, sample) in session.samples.iter_mut().enumerate() {
        let counter = |device: &str, microjoules, range| EnergyCounter {
            device: device.into(),
            microjoules,
            range_microjoules: range,
        };
        // 2 J a step, wrapping at 5 J; a platform's count holds the package's and is not added.
        sample.energy = Some(vec![
            counter(
                "package-0",
                i as u64 * 2_000_000 % 5_000_000,
                Some(5_000_000),
            ),
            counter("psys", i as u64 * 9_000_000, None),
        ]);
        sample.power = Some(vec![PowerReading {
            device: "amdgpu 0000:03:00.0".into(),
            microwatts: 8_000_000,
        }]);
    }
    let figures = derive(&facts);
    let at = |name: &str| {
        figures
            .get(name)
            .unwrap_or_else(|| panic!("{name} is missing"))
    };
    let steps = before as f64;
    let package = at(&format!("session/{name}/energy/package-0"));
    assert_eq!(
        (package.value(), package.unit(), package.label()),
        (Some(2.0 * steps), Unit::Joules, Label::Measured)
    );
    assert_eq!(
        at(&format!("session/{name}/energy/psys")).value(),
        Some(9.0 * steps)
    );
    let gpu = at(&format!("session/{name}/energy/amdgpu-0000-03-00-0"));
    assert_eq!(
        (gpu.value(), gpu.label()),
        (Some(8.0 * 0.5 * steps), Label::Calculated)
    );
    let total = at(&format!("session/{name}/energy")).value().unwrap();
    assert_eq!(total, 6.0 * steps);
    let tokens = at(&format!("session/{name}/energy_tokens"))
        .value()
        .unwrap();
    assert_eq!(
        at(&format!("session/{name}/energy_per_token")).value(),
        Some(total / tokens)
    );
    // Where the host shows none it is missing, not 0.
    let other = facts.sessions[2].name();
    assert_eq!(at(&format!("session/{other}/energy")).value(), None);
    assert_eq!(
        at(&format!("session/{other}/energy_per_token")).value(),
        None
    );
    let arm = &facts.sessions[1].planned.arm;
    assert_eq!(
        at(&format!("arm/{arm}/energy_per_token")).value(),
        None,
        "not all of its sessions show it"
    );
}

#[test]
fn archives_from_before_have_none_of_this() {
    let root = tempfile::tempdir().unwrap();
    let path = sealed(root.path(), &[true]);
    let figures = Archive::open(&path).unwrap().figures().unwrap().unwrap();
    assert!(figures.settings().is_empty() && figures.noise().is_empty());
    assert!(
        !figures
            .all()
            .iter()
            .any(|f| f.id().contains("energy") || f.id().contains("itl"))
    );
}

#[test]
fn requests_one_at_a_time_have_all_times_of_their_answers() {
    let script = "[[reply]]\nprompt_ms = 2\ntokens = 5\nreasoning_tokens = 2\ngap_ms = 2\n";
    let bench = Bench::new("burn_in = false", "", &[script, script]);
    let (archive, figures) = run_and_seal(&bench);
    let session = archive.facts().unwrap().sessions[0].name();
    let at = |metric: &str| figures.value(&format!("session/{session}/{metric}"));
    let (byte, token, content) = (at("first_byte"), at("ttft"), at("first_content"));
    assert!(
        byte < token && token < content,
        "{byte:?} {token:?} {content:?}"
    );
    assert!(at("tpot").is_some_and(|s| s > 0.0));
    assert!(at("itl").is_some_and(|s| s > 0.0));
    assert_eq!(at("itl_p90"), None, "two requests bound no percentile");
    assert!(audit(archive.path()).unwrap().passed());
}
