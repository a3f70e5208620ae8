//! Whole studies over scripted servers: settings judged, told first, audited, and fatal where strict.

use palindrome_harness::archive::Archive;
use palindrome_harness::audit::audit;
use palindrome_harness::cli::Exit;
use palindrome_harness::derive::{Figures, Setting, Verdicted, derive};
use palindrome_harness::report::{verdict_table, write};

use crate::archive_fixture::forge;
use crate::common::Bench;
use crate::support::run_and_seal;

/// A mock that says in `/props` and in its log what the bundled engine and llama.cpp would.
fn scripted(threads: u32, log: &[&str]) -> String {
    format!(
        "log = {log:?}\nprops = '''{{\"threads\": {threads}, \"n_ctx\": 4096, \"isa\": \"scalar\", \"total_slots\": 1}}'''\n\
         [[reply]]\nprompt_ms = 1\ntokens = 3\ngap_ms = 1\n"
    )
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
        first.starts_with('A'),
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
    forge::edit(archive.path(), &file, |text| {
        text.replacen("\\\"threads\\\":2", "\\\"threads\\\":8", 1)
    });
    forge::reseal(archive.path());
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
