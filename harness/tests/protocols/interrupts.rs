//! Being told to stop while many requests are in flight.

use std::thread;
use std::time::Duration;

use palindrome_harness::archive::ArchiveWriter;
use palindrome_harness::session::{Cancel, RunError, Silent, run};
use serde_json::Value;

use crate::common::{Bench, is_alive};

/// Answers begin and never end.
const HANGS: &str = "[[reply]]\ntokens = 4\nend = \"hang\"\n";

#[test]
fn an_interrupt_ends_whatever_is_in_flight_and_leaves_a_resumable_study() {
    for protocol in [
        "kind = \"cohort\"\ncopies = 8",
        "kind = \"closed-loop\"\nconcurrency = [4]\nrequests = 100",
        "kind = \"open-loop\"\nrates_rps = [200]\nrequests = 1000",
    ] {
        let tail = format!("[protocol]\n{protocol}\n");
        let bench = Bench::new("burn_in = false", &tail, &[HANGS, HANGS]);
        let cancel = Cancel::new();
        let stop = cancel.clone();
        let server = bench.options.archives.clone();
        let watch = thread::spawn(move || {
            // Once the server is there, its answers hang soon after.
            let ready = || {
                let entries = std::fs::read_dir(&server).ok()?.flatten();
                let mut log = entries.map(|e| e.path().join("events.jsonl"));
                let text = log.find_map(|log| std::fs::read_to_string(log).ok())?;
                let mut events = text.lines().map(serde_json::from_str::<Value>);
                let ready = events.find_map(|e| e.ok().filter(|e| e["kind"] == "server-ready"))?;
                ready["detail"]["pid"].as_u64()
            };
            // Half a minute is more than a mock takes; then the run is stopped all the same.
            let looks = (0..1500).find_map(|_| {
                thread::sleep(Duration::from_millis(20));
                ready()
            });
            thread::sleep(Duration::from_millis(200));
            stop.set();
            looks
        });
        let ended = run(&bench.study(), &bench.options, &cancel, &Silent);
        let error = ended.map(|_| ()).unwrap_err();
        let RunError::Interrupted { archive } = &error else {
            panic!("{protocol}: {error}");
        };
        assert!(
            !is_alive(watch.join().unwrap().unwrap()),
            "the server outlived it"
        );
        let finished = ArchiveWriter::resume(archive).unwrap().finished_sessions();
        assert!(finished.unwrap().is_empty(), "{protocol}");
    }
}
