//! Noise and energy, from telemetry.

use palindrome_harness::derive::{Label, NoiseKind, Unit, derive};
use palindrome_harness::host::{EnergyCounter, OtherProcess, OtherProcesses, PowerReading};
use palindrome_harness::report::verdict_table;

use crate::support::{facts, sample};

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
