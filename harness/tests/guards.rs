//! The machine is fit, or the study waits and then refuses.

mod common;

use std::time::Duration;

use common::{Bench, events};
use palindrome_harness::cli::Exit;
use palindrome_harness::host::{
    GuardError, LockError, Readings, RunLock, violations, wait_until_fit,
};
use palindrome_harness::study::Guards;

fn strict() -> Guards {
    Guards {
        min_free_ram_mb: Some(1000),
        max_load: Some(1.0),
        max_psi_cpu_some10: Some(5.0),
        wait_s: 0.0,
        ..Guards::default()
    }
}

fn quiet() -> Readings {
    Readings {
        available_bytes: Some(2_000_000_000),
        load1: Some(0.5),
        logical_cpus: Some(2),
        psi_cpu_some10: Some(0.0),
        psi_memory_some10: Some(0.0),
        servers: Vec::new(),
    }
}

#[test]
fn every_bound_is_told_with_what_was_seen() {
    assert_eq!(violations(&strict(), &quiet()), Vec::<String>::new());
    let busy = Readings {
        available_bytes: Some(5_000_000),
        load1: Some(3.0),
        logical_cpus: Some(2),
        psi_cpu_some10: None,
        psi_memory_some10: None,
        servers: vec![("ollama".into(), 12)],
    };
    assert_eq!(
        violations(&strict(), &busy),
        [
            "one-minute load is 3.00, the study allows 1",
            "CPU pressure (some avg10) is not shown by this machine, the study allows 5",
            "5 MB of memory are available, the study needs 1000",
            "another inference server runs: ollama (process 12)",
        ]
    );
    let lenient = Guards {
        allow_other_servers: true,
        ..Guards::default()
    };
    assert_eq!(violations(&lenient, &busy), Vec::<String>::new());
}

#[test]
fn a_machine_that_settles_is_waited_for() {
    let guards = Guards {
        wait_s: 60.0,
        ..strict()
    };
    let mut looks = 0;
    let look = || {
        looks += 1;
        if looks < 3 {
            Readings {
                load1: Some(9.0),
                ..quiet()
            }
        } else {
            quiet()
        }
    };
    let mut told = Vec::new();
    let seen = wait_until_fit(
        &guards,
        look,
        |reasons| told.push(reasons.to_vec()),
        || false,
    )
    .unwrap();
    assert_eq!(seen.load1, Some(0.5));
    assert_eq!(
        told,
        [vec![
            "one-minute load is 9.00, the study allows 1".to_owned()
        ]]
    );
    let interrupted = wait_until_fit(
        &guards,
        || Readings {
            load1: Some(9.0),
            ..quiet()
        },
        |_| {},
        || true,
    );
    assert_eq!(interrupted, Err(GuardError::Cancelled));
}

#[test]
fn an_unfit_machine_refuses_with_exit_102() {
    let bench = Bench::new("", "", &["", ""]);
    let study = std::fs::read_to_string(bench.folder.path().join("study.toml")).unwrap();
    let study = study.replace("wait_s = 0", "wait_s = 0\nmin_free_ram_mb = 999999999");
    std::fs::write(bench.folder.path().join("study.toml"), study).unwrap();
    let error = bench.fail();
    assert_eq!(error.exit(), Exit::HostGuard);
    assert!(
        error.to_string().contains("the study needs 999999999"),
        "{error}"
    );
    let (kind, _) = events(error.resumable().unwrap()).pop().unwrap();
    assert_eq!(kind, "guard-refused");
}

#[test]
fn a_second_run_is_told_who_holds_the_lock() {
    let bench = Bench::new("", "", &["", ""]);
    let lock = RunLock::take(&bench.options.lock, Duration::ZERO, |_| {}, || false).unwrap();
    let error = bench.fail();
    assert_eq!(error.exit(), Exit::HostGuard);
    let holder = format!("another study is running: process {}", std::process::id());
    assert!(error.to_string().starts_with(&holder), "{error}");
    assert!(
        !bench.options.archives.exists(),
        "a refused run leaves no archive"
    );
    drop(lock);
    RunLock::take(&bench.options.lock, Duration::ZERO, |_| {}, || false).unwrap();
}

#[test]
fn a_waiting_run_gets_the_lock_when_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run/lock");
    let mut first = Some(RunLock::take(&path, Duration::ZERO, |_| {}, || false).unwrap());
    let mut told = Vec::new();
    let release = |why: &str| {
        told.push(why.to_owned());
        first = None;
    };
    RunLock::take(&path, Duration::from_mins(1), release, || false).unwrap();
    assert_eq!(
        told,
        [format!(
            "another study is running (process {})",
            std::process::id()
        )]
    );
    let _held = RunLock::take(&path, Duration::ZERO, |_| {}, || false).unwrap();
    let interrupted = RunLock::take(&path, Duration::from_mins(1), |_| {}, || true);
    assert!(matches!(interrupted, Err(LockError::Cancelled)));
}
