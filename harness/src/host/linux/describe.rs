//! Describing the machine.

use std::collections::BTreeSet;

use super::proc::{meminfo, text};
use crate::host::{HostFacts, logical_cpus};

/// Everything that the machine shows of itself.
pub(super) fn describe() -> HostFacts {
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    let flags = cpu_field(&cpuinfo, "flags")
        .or(cpu_field(&cpuinfo, "Features"))
        .unwrap_or_default();
    let cpu_flags: BTreeSet<&str> = flags.split_whitespace().collect();
    let memory = meminfo();
    HostFacts {
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        os: text("/etc/os-release").as_deref().and_then(os_name),
        kernel: text("/proc/sys/kernel/osrelease"),
        arch: std::env::consts::ARCH.to_owned(),
        cpu_model: cpu_field(&cpuinfo, "model name").map(str::to_owned),
        virtualised: (!cpu_flags.is_empty() && cfg!(target_arch = "x86_64"))
            .then(|| cpu_flags.contains("hypervisor")),
        cpu_flags: cpu_flags.into_iter().map(str::to_owned).collect(),
        logical_cpus: logical_cpus(),
        physical_cores: physical_cores(&cpuinfo),
        memory_bytes: memory.get("MemTotal").copied(),
        swap_bytes: memory.get("SwapTotal").copied(),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clocksource: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        transparent_hugepage: text("/sys/kernel/mm/transparent_hugepage/enabled"),
        ..HostFacts::default()
    }
}

fn cpu_field<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|l| {
        let (k, v) = l.split_once(':')?;
        (k.trim() == key).then(|| v.trim())
    })
}

fn os_name(release: &str) -> Option<String> {
    let value = release
        .lines()
        .find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// Distinct (socket, core) pairs; absent where the kernel does not say.
fn physical_cores(cpuinfo: &str) -> Option<u32> {
    let cores: BTreeSet<(&str, &str)> = cpuinfo
        .split("\n\n")
        .filter_map(|cpu| Some((cpu_field(cpu, "physical id")?, cpu_field(cpu, "core id")?)))
        .collect();
    (!cores.is_empty()).then_some(cores.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_counted_once_a_socket() {
        let cpu = |socket: u32, core: u32| {
            format!("processor : 0\nphysical id : {socket}\ncore id : {core}")
        };
        let info = [cpu(0, 0), cpu(0, 0), cpu(0, 1), cpu(1, 0)].join("\n\n");
        assert_eq!(physical_cores(&info), Some(3));
        assert_eq!(physical_cores("processor : 0"), None);
        assert_eq!(
            os_name("ID=x\nPRETTY_NAME=\"An OS 1\"").as_deref(),
            Some("An OS 1")
        );
    }
}
