//! One look at the machine, several times a second.

use std::fs;

use super::proc::{CpuTime, cpu_time, load1, meminfo, number, pressure_some10, text, vmstat};
use super::processes::Scanner;
use super::{energy, throttle};
use crate::host::machine::Telemetry;
use crate::host::{HostSample, now_ns};

/// Reads telemetry; knows the last reading where a difference is shown.
#[derive(Debug, Default)]
pub(super) struct LinuxTelemetry {
    before: Option<CpuTime>,
    scanner: Scanner,
    thermal: throttle::ThermalEvents,
    taken: u32,
}

/// Counters that are many and change rarely are read with every fourth sample.
const RARELY: u32 = 4;

impl Telemetry for LinuxTelemetry {
    fn sample(&mut self, last: bool) -> HostSample {
        let now = cpu_time();
        let since = self.before.zip(now).and_then(|(a, b)| b.since(a));
        self.before = now;
        let rarely = last || self.taken.is_multiple_of(RARELY);
        self.taken += 1;
        let memory = meminfo();
        let vm = vmstat();
        let pages = |name: &str| Some(vm.get(name)? * rustix::param::page_size() as u64);
        let (energy, power) = energy::read();
        HostSample {
            ns: now_ns(),
            cpu_busy: since.map(|s| s.busy),
            load1: load1(),
            psi_cpu_some10: pressure_some10("cpu"),
            psi_memory_some10: pressure_some10("memory"),
            psi_io_some10: pressure_some10("io"),
            available_bytes: memory.get("MemAvailable").copied(),
            cached_bytes: memory.get("Cached").copied(),
            faults: vm.get("pgfault").copied(),
            major_faults: vm.get("pgmajfault").copied(),
            disk_read_bytes: disk_read_bytes(),
            cpu_mhz: number::<f64>("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
                .map(|khz| khz / 1000.0),
            celsius: hottest(),
            cpu_steal: since.map(|s| s.steal),
            swap_in_bytes: pages("pswpin"),
            swap_out_bytes: pages("pswpout"),
            thermal_throttles: if rarely { self.thermal.count() } else { None },
            cgroup_throttled_ns: throttle::cgroup_throttled_ns(),
            energy,
            power,
            others: self.scanner.scan(last),
        }
    }
}

/// Bytes read by whole disks: partitions, loops and stacked devices would count twice.
fn disk_read_bytes() -> Option<u64> {
    let mut sectors = None;
    for line in text("/proc/diskstats")?.lines() {
        let mut fields = line.split_whitespace().skip(2);
        let (Some(name), Some(read)) = (fields.next(), fields.nth(2)) else {
            continue;
        };
        let whole = fs::exists(format!("/sys/block/{name}/device")).unwrap_or(false);
        if whole && let Ok(read) = read.parse::<u64>() {
            sectors = Some(sectors.unwrap_or(0) + read);
        }
    }
    // Always 512 bytes here, whatever the disk's own sector size.
    sectors.map(|s| s * 512)
}

fn hottest() -> Option<f64> {
    let zones = fs::read_dir("/sys/class/thermal").ok()?;
    zones
        .filter_map(|zone| number::<f64>(zone.ok()?.path().join("temp")))
        .map(|milli| milli / 1000.0)
        .reduce(f64::max)
}
