//! `palindrome doctor`: what this machine lacks, what it means and what helps.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::aa::{of_kind, this_host, what_is_seen};
use super::args::DoctorArgs;
use super::{Exit, describe};
use crate::derive::{Metric, percent, three_digits};
use crate::host::{HostFacts, HostRecord, Readings, machine, telemetry_not_shown};
use crate::replay::ClientCost;
use crate::setup::{SetupError, active, cache_folder, check_venv, find_python, on_path};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Ok,
    /// Studies run; their figures may be worse for it.
    Note,
    /// Studies cannot run.
    Missing,
}

#[derive(Clone, Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    found: String,
    /// What to do; empty where nothing is to be done.
    fix: String,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Ok,
            found: found.into(),
            fix: String::new(),
        }
    }

    fn bad(
        name: &'static str,
        state: State,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state,
            found: found.into(),
            fix: fix.into(),
        }
    }
}

/// Looks at the machine; exit 0 only if studies can run on it.
pub fn doctor(args: &DoctorArgs) -> Exit {
    let cache = cache_folder();
    let readings = Readings::take();
    let facts = machine().describe();
    let mut checks = python();
    checks.extend([
        compiler(),
        cargo(),
        disk(&cache),
        memory(&readings),
        clock(&facts),
        client(),
        governor(&facts),
        load(&readings),
        pressure(&readings),
        telemetry(),
        servers(&readings),
        llama_cpp(&cache),
        spread(&cache),
    ]);
    let fit = checks.iter().all(|c| c.state != State::Missing);
    if args.json {
        println!(
            "{}",
            serde_json::json!({ "usable": fit, "cache": cache, "checks": checks })
        );
    } else {
        for check in &checks {
            let mark = match check.state {
                State::Ok => "ok     ",
                State::Note => "note   ",
                State::Missing => "MISSING",
            };
            println!("{mark} {:16} {}", check.name, check.found);
            if !check.fix.is_empty() {
                println!("        {:16} -> {}", "", check.fix);
            }
        }
        let verdict = if fit {
            "this machine can run studies"
        } else {
            "this machine cannot run studies yet"
        };
        println!("\n{verdict}; cache: {}", cache.display());
    }
    if fit { Exit::Done } else { Exit::HostGuard }
}

/// What this machine does not show while sessions run: a dash in every report.
fn telemetry() -> Check {
    let mut telemetry = machine().telemetry();
    let first = telemetry.sample(false);
    // Shares of CPU time are between two looks.
    std::thread::sleep(Duration::from_millis(50));
    let second = telemetry.sample(true);
    let unseen = telemetry_not_shown(&[&first, &second]);
    if unseen.is_empty() {
        return Check::ok("telemetry", "everything that is looked for is shown");
    }
    let fix = if unseen.contains(&"energy") {
        "energy counters, where there are any, are often readable by root alone"
    } else {
        ""
    };
    let found = format!("not shown here: {}", unseen.join(", "));
    Check::bad("telemetry", State::Note, found, fix)
}

fn python() -> Vec<Check> {
    let (program, version) = match find_python() {
        Ok(found) => found,
        Err(e) => {
            return vec![Check::bad(
                "python",
                State::Missing,
                "none of 3.10 or later",
                e.to_string(),
            )];
        }
    };
    let mut checks = vec![Check::ok(
        "python",
        format!("{version} ({})", program.display()),
    )];
    checks.push(match check_venv(&program) {
        Ok(()) => Check::ok("venv and pip", "Python can make environments with pip"),
        Err(e) => Check::bad(
            "venv and pip",
            State::Missing,
            "Python cannot make environments",
            e.to_string(),
        ),
    });
    checks
}

fn compiler() -> Check {
    match ["cc", "gcc", "clang"].iter().find_map(|name| on_path(name)) {
        Some(path) => Check::ok("C compiler", path.display().to_string()),
        None => Check::bad(
            "C compiler",
            State::Missing,
            "none of cc, gcc, clang",
            "install one (Debian: `apt install build-essential`); the engine is linked with it",
        ),
    }
}

fn cargo() -> Check {
    match on_path("cargo") {
        Some(path) => Check::ok("cargo", path.display().to_string()),
        None => Check::bad(
            "cargo",
            State::Note,
            "not on PATH",
            "`demo` builds the engine with it; install Rust, or add ~/.cargo/bin to PATH",
        ),
    }
}

fn disk(cache: &Path) -> Check {
    const NEEDED_MB: u64 = 1000;
    let there = cache
        .ancestors()
        .find(|folder| folder.exists())
        .unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Ok(fs) => {
            let free_mb = fs.f_bavail * fs.f_frsize / 1_000_000;
            let found = format!("{free_mb} MB free at {}", there.display());
            if free_mb >= NEEDED_MB {
                Check::ok("disk", found)
            } else {
                let fix = format!("free {NEEDED_MB} MB, or set PALINDROME_CACHE to another disk");
                Check::bad("disk", State::Missing, found, fix)
            }
        }
        Err(e) => Check::bad("disk", State::Note, format!("cannot be read: {e}"), ""),
    }
}

fn memory(readings: &Readings) -> Check {
    const NEEDED_MB: u64 = 1024;
    match readings.available_bytes.map(|bytes| bytes / 1_000_000) {
        Some(mb) if mb >= NEEDED_MB => Check::ok("memory", format!("{mb} MB available")),
        Some(mb) => Check::bad(
            "memory",
            State::Missing,
            format!("{mb} MB available"),
            format!("the demo needs {NEEDED_MB} MB: close other programs"),
        ),
        None => Check::bad("memory", State::Note, "not shown by this system", ""),
    }
}

fn clock(facts: &HostFacts) -> Check {
    match facts.clocksource.clone() {
        Some(source) if ["tsc", "kvm-clock", "arch_sys_counter"].contains(&source.as_str()) => {
            Check::ok("clock", source)
        }
        Some(source) => Check::bad(
            "clock",
            State::Note,
            source,
            "a slow clock source: reading the time costs microseconds; boot with tsc if the CPU allows",
        ),
        None => Check::bad(
            "clock",
            State::Note,
            "the source is not shown by this system",
            "",
        ),
    }
}

/// What the client itself costs, as a share of the gap between tokens of a stream of 10,000 tokens a
/// second (100 µs), and of all of 64 such streams.
fn client() -> Check {
    const GAP_NS: f64 = 1e9 / 10_000.0;
    const STREAMS: f64 = 64.0;
    let cost = ClientCost::measure();
    let share = |ns: f64| format!("{}%", three_digits(ns / GAP_NS * 100.0));
    let own = cost.stamp_and_store_ns;
    let read = cost.with_read_ns.map(|ns| {
        format!(
            "; {:.2} µs with the system's read ({}; 64 such streams, an event a read, take {:.2} processors)",
            ns / 1e3,
            share(ns),
            ns / GAP_NS * STREAMS
        )
    });
    let found = format!(
        "{:.2} µs of CPU to stamp and store an event: {} of a token gap at 10000 tokens/s{}",
        own / 1e3,
        share(own),
        read.unwrap_or_default()
    );
    if own < GAP_NS / 100.0 {
        return Check::ok("client cost", found);
    }
    let fix =
        "times of very fast streams hold some of the client's own work; a release build is faster";
    Check::bad("client cost", State::Note, found, fix)
}

fn governor(facts: &HostFacts) -> Check {
    match facts.governor.clone() {
        Some(name) if name == "performance" => Check::ok("governor", name),
        Some(name) => Check::bad(
            "governor",
            State::Note,
            name,
            "clocks follow the load; for steadier figures: `cpupower frequency-set -g performance`",
        ),
        None => Check::ok("governor", "not shown (usual on virtual machines)"),
    }
}

fn load(readings: &Readings) -> Check {
    let found = match readings.load1 {
        Some(load) => format!("{load:.1} over the last minute"),
        None => "not shown by this system".to_owned(),
    };
    match readings.other_work() {
        Some(work) => Check::bad("load", State::Note, found, work),
        None => Check::ok("load", found),
    }
}

fn pressure(readings: &Readings) -> Check {
    match readings.psi_cpu_some10 {
        Some(share) if share < 10.0 => {
            Check::ok("CPU pressure", format!("{share:.1}% of the last 10 s"))
        }
        Some(share) => Check::bad(
            "CPU pressure",
            State::Note,
            format!("{share:.1}% of the last 10 s"),
            "something else wants the CPU: figures taken now would show that; wait or stop it",
        ),
        None => Check::bad(
            "CPU pressure",
            State::Note,
            "not shown by this kernel (PSI)",
            "",
        ),
    }
}

fn servers(readings: &Readings) -> Check {
    if readings.servers.is_empty() {
        return Check::ok("other servers", "none");
    }
    let names: Vec<String> = readings
        .servers
        .iter()
        .map(|(name, pid)| format!("{name} ({pid})"))
        .collect();
    Check::bad(
        "other servers",
        State::Note,
        names.join(", "),
        "studies refuse to start beside another inference server: stop it first",
    )
}

fn llama_cpp(cache: &Path) -> Check {
    match active(cache) {
        Ok(server) => Check::ok(
            "llama.cpp",
            describe(&server).lines().next().unwrap_or_default(),
        ),
        Err(SetupError::NotSetUp) => Check::bad(
            "llama.cpp",
            State::Note,
            "not set up yet",
            "`demo` does it, or `palindrome setup llama-cpp`",
        ),
        Err(e) => Check::bad("llama.cpp", State::Note, "damaged", e.to_string()),
    }
}

/// How much one server differs from itself here, and what a default study sees of that.
fn spread(cache: &Path) -> Check {
    const NAME: &str = "A/A spread";
    let record = match HostRecord::load(cache, &this_host()) {
        Ok(record) => record,
        Err(e) => {
            let fix = "run `palindrome aa` again after removing the folder `hosts` there";
            let found = format!("the record in {} cannot be read: {e}", cache.display());
            return Check::bad(NAME, State::Note, found, fix);
        }
    };
    let seen: Vec<String> = [Metric::DecodeRate, Metric::Ttft]
        .into_iter()
        .flat_map(|metric| {
            let newest = record.newest_by_kind(metric.key());
            newest.into_iter().map(move |(aa, deviation)| (metric, aa, deviation))
        })
        .filter_map(|(metric, aa, deviation)| {
            let seen = what_is_seen(aa, metric)?.log_effect?;
            Some(format!(
                "{}: pairs of sessions differ by {}, a default study (3 quartets) sees {} ({}{}, {})",
                metric.title().to_lowercase(),
                percent(deviation),
                percent(seen),
                aa.server,
                of_kind(aa),
                aa.utc.split('T').next().unwrap_or_default(),
            ))
        })
        .collect();
    if seen.is_empty() {
        let fix = "how small a difference shows here is not known: `palindrome aa STUDY.toml` measures it";
        return Check::bad(
            NAME,
            State::Note,
            "no A/A study of a server was run on this machine",
            fix,
        );
    }
    let newest = record.newest_by_kind(Metric::DecodeRate.key());
    if newest.iter().any(|(aa, _)| aa.other_work) {
        let fix = "the machine had other work meanwhile: run `palindrome aa` again on a quiet one";
        return Check::bad(NAME, State::Note, seen.join("; "), fix);
    }
    Check::ok(NAME, seen.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_a_note_with_advice_and_no_obstacle() {
        let busy = |load| Readings {
            load1: Some(load),
            logical_cpus: Some(4),
            ..Readings::default()
        };
        let (quiet, crowded) = (load(&busy(4.0)), load(&busy(4.5)));
        assert_eq!((quiet.state, crowded.state), (State::Ok, State::Note));
        assert!(quiet.fix.is_empty() && crowded.fix.contains("4.5 on 4"));
    }
}
