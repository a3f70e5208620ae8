//! Studies over a mock that says how it is set, and facts as if servers had been read back.

use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::derive::{Figures, derive};
use palindrome_harness::host::{HostSample, ProcessFacts};
use palindrome_harness::server::{ClockPair, Readback, RouteAnswer};

use crate::archive_fixture::sealed;
use crate::common::Bench;

pub fn run_and_seal(bench: &Bench) -> (Archive, Figures) {
    let writer = bench.run().unwrap();
    let figures = derive(&Archive::open(writer.path()).unwrap().facts().unwrap());
    let path = writer.seal(&figures).unwrap();
    (Archive::open(&path).unwrap(), figures)
}

pub fn readback_of(log: &str, props: &str) -> Readback {
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

/// The fixture's facts as if its servers had been read back, with samples each half second around
/// the requests of each session.
pub fn facts() -> (tempfile::TempDir, Facts) {
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

pub fn sample(from: u64, i: u64) -> HostSample {
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
